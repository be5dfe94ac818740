#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::passes {

// Brings every node of the model, subgraphs and function bodies included, to the newest version of its operator.
// Returns notes for the user, such as an opset newer than any this version knows. Throws ErrorCode::unknown_operator
// with all operators and domains that are unknown at once.
std::vector<std::string> lift_to_newest_opset(ir::Model& model);

// Brings nodes of ai.onnx to what their operators meant in opset `version`, and the imports to that; those of a later
// opset stay. The model can be written and read again.
void lift_to_opset(ir::Model& model, int64_t version);

// Replaces calls of model-local functions by their bodies; a function may not call itself.
void inline_functions(ir::Model& model);

}  // namespace tenon::passes
