// Sums, differences, products and quotients of half precision floats, where processors have arithmetic for them.
#pragma once

#include <cstdint>

#include "base/channel_block.h"

namespace tenon::kernels {

enum class HalfOperation { add, subtract, multiply, divide };

// Row r of y is row r of a and of b, each `columns` numbers or, where `a_step` or `b_step` is 0, one for all of them.
struct HalfRows {
  const uint16_t *a, *b;
  uint16_t* y;
  int64_t rows, columns;
  int64_t a_row, b_row;    // from row to row; those of y follow each other
  int64_t a_step, b_step;  // from column to column: 1 or 0
};

// Rounded as the exact results are. y may be a or b. Only where has_half_arithmetic().
void f16_arithmetic(HalfOperation operation, const HalfRows& rows);
void f16_arithmetic_neon_fp16(HalfOperation operation, const HalfRows& rows);

}  // namespace tenon::kernels
