#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon::ops {

// Makes a TreeEnsemble of float32 the TreeEnsembleRegressor that computes the same, as version 3 of ai.onnx.ml has it;
// "" or the reason why there is none.
std::string become_regressor(ir::Node& node);

// Writes tensors of float32 as the lists that versions before 3 have; "" or the reason why it cannot be done.
std::string tensors_to_lists(ir::Node& node);

}  // namespace tenon::ops
