#pragma once

#include "ops/elementwise.h"

namespace tenon::ops {

// The loops of one operator, by the type of its inputs.
using BinaryTable = LoopTable<BinaryLoop>;

// Loops that do not look at signs: those of unsigned integers also serve the signed ones.
constexpr BinaryTable shared_between_signs(BinaryTable table) {
  using enum ElementType;
  auto share = [&](ElementType to, ElementType from) {
    table[static_cast<size_t>(to)] = table[static_cast<size_t>(from)];
  };
  share(int8, uint8);
  share(int16, uint16);
  share(int32, uint32);
  share(int64, uint64);
  return table;
}

extern const BinaryTable add_loops, sub_loops, mul_loops, div_loops, floor_mod_loops, truncated_mod_loops, prelu_loops;
extern const BinaryTable pow_loops;          // both inputs of one type: floats, int32, int64
extern const BinaryTable square_loops;       // of the first input alone
extern const BinaryTable square_root_loops;  // of the first input alone
extern const BinaryTable equal_loops, less_loops, less_or_equal_loops, greater_loops, greater_or_equal_loops;
extern const BinaryTable and_loops, or_loops, xor_loops;  // of booleans
extern const BinaryTable bitwise_and_loops, bitwise_or_loops, bitwise_xor_loops, shift_left_loops, shift_right_loops;

}  // namespace tenon::ops
