#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/custom_operator_list.h"

namespace tenon::passes {

// Brings every node of the model, subgraphs and function bodies included, to the newest version of its operator. Nodes
// of the user's own operators, `custom`, get theirs; a function of the model goes before both.
// Returns notes for the user, such as an opset newer than any this version knows. Throws ErrorCode::unknown_operator
// with all operators and domains that are unknown at once.
std::vector<std::string> lift_to_newest_opset(ir::Model& model, const ops::CustomOperatorList& custom = {});

// Brings nodes of ai.onnx to what their operators meant in opset `version`, and the imports to that; those of a later
// opset stay. The model can be written and read again.
void lift_to_opset(ir::Model& model, int64_t version, const ops::CustomOperatorList& custom = {});

// Replaces calls of model-local functions by their bodies; a function may not call itself.
void inline_functions(ir::Model& model);

}  // namespace tenon::passes
