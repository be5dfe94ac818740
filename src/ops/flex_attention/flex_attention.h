#pragma once

#include "ir/graph.h"

namespace tenon::ops {

// The type of the scores and weights that the modifiers of a FlexAttention on `data` see.
ElementType softmax_precision(const ir::Node& node, ElementType data);

}  // namespace tenon::ops
