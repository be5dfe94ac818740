#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/custom_operator_list.h"
#include "tenon/error.h"

namespace tenon::passes {

// Brings every node of the model, subgraphs and function bodies included, to the newest version of its operator. Nodes
// of the user's own operators, `custom`, get theirs; a function of the model goes before both.
// Returns notes for the user, such as an opset newer than any this version knows. Throws ErrorCode::unknown_operator
// with all operators and domains that are unknown at once.
// With `problems`, what would be thrown goes there, an entry for each node, and such nodes are left as they are, with a
// stand-in for an operator.
struct LiftProblem {
  std::string node, domain;
  Error error;
};
std::vector<std::string> lift_to_newest_opset(ir::Model& model, const ops::CustomOperatorList& custom = {},
                                              std::vector<LiftProblem>* problems = nullptr);

// By domain; "" is ai.onnx.
using OpsetVersions = std::map<std::string, int64_t>;

// Brings nodes to what their operators meant in these versions of the operator sets, and the imports to those; nodes of
// later versions and of other domains stay. The model can be written and read again.
void lift_to_opsets(ir::Model& model, const OpsetVersions& versions, const ops::CustomOperatorList& custom = {});

// Replaces calls of model-local functions by their bodies; a function may not call itself.
void inline_functions(ir::Model& model);

}  // namespace tenon::passes
