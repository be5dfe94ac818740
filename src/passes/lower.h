#pragma once

#include "ir/graph.h"

namespace tenon::passes {

// The inverse of lift_to_newest_opset: writes every node as the opsets that the model imports have it, so that the
// model can be saved. An operator that is newer than that is written as a model-local function with its decomposition
// as body, or in place where the model's IR version has no functions. Types must be inferred. Throws
// ErrorCode::unsupported with every node that has no expression there, and why.
void lower_to_imported_opsets(ir::Model& model);

}  // namespace tenon::passes
