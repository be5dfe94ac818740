#pragma once

#include "ir/graph.h"

namespace tenon::ops {

// The tensor that a Constant node with a dense value makes.
Tensor constant_content(const ir::Node& node);

}  // namespace tenon::ops
