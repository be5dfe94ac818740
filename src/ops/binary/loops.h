#pragma once

#include "ops/elementwise.h"

namespace tenon::ops {

// The loops of one operator, by the type of its inputs.
using BinaryTable = LoopTable<BinaryLoop>;

extern const BinaryTable add_loops, sub_loops, mul_loops, div_loops, floor_mod_loops, truncated_mod_loops, prelu_loops;
extern const BinaryTable pow_loops;          // both inputs of one type: floats, int32, int64
extern const BinaryTable square_loops;       // of the first input alone
extern const BinaryTable square_root_loops;  // of the first input alone
extern const BinaryTable equal_loops, less_loops, less_or_equal_loops, greater_loops, greater_or_equal_loops;
extern const BinaryTable and_loops, or_loops, xor_loops;  // of booleans
extern const BinaryTable bitwise_and_loops, bitwise_or_loops, bitwise_xor_loops, shift_left_loops, shift_right_loops;

}  // namespace tenon::ops
