// Version adapters that several operators share.
#pragma once

#include "ir/graph.h"

namespace tenon::ops {

// Version 1 of many operators had this hint, which says nothing about the result.
void drop_consumed_inputs(ir::Node& node);

// Before version 7 the second input was broadcast only when `broadcast` was set, and lined up with the first from
// `axis` on. Gives it the trailing axes of size 1 that today's broadcasting needs.
void lift_limited_broadcast(ir::Node& node);

// Gives input `i` trailing axes of size 1, so that its first axis meets `axis` of input 0.
void line_up_with_axis(ir::Node& node, size_t i, int64_t axis);

// Makes a list attribute an int64 input. Without the attribute the input stays left out.
void attribute_to_input(ir::Node& node, std::string_view attribute, size_t input);

}  // namespace tenon::ops
