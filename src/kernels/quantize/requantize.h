// Sums of products of 8-bit integers as 8-bit integers again.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// The scale of element i is at[i * step], where step is 0 or 1.
struct Scales {
  const float* at;
  int64_t step;
};

// y[i] = x[i] + addend (which wraps around), scaled, rounded to even, plus `zero`, saturated, for i < n; the lowest
// value where the scale is NaN. x that is float holds whole numbers below 2^24. Single-threaded: callers split the
// array.
void requantize(const int32_t* x, int32_t addend, Scales scales, uint8_t zero, uint8_t* y, int64_t n);
void requantize(const int32_t* x, int32_t addend, Scales scales, int8_t zero, int8_t* y, int64_t n);
void requantize(const float* x, int32_t addend, Scales scales, uint8_t zero, uint8_t* y, int64_t n);
void requantize(const float* x, int32_t addend, Scales scales, int8_t zero, int8_t* y, int64_t n);

// Rows of n sums that start `ld` apart.
struct SumRows {
  const int32_t* at;
  int64_t ld, rows, n;
};

// The same for rows, to each of which the scales apply. Rows of y are ldy apart.
void requantize_rows(const SumRows& x, Scales scales, uint8_t zero, uint8_t* y, int64_t ldy);
void requantize_rows(const SumRows& x, Scales scales, int8_t zero, int8_t* y, int64_t ldy);
// Codes to which others are added, one for each element of a row: y = round((code - code_zero) * factor + addends[i]) +
// zero, saturated.
struct AddedCodes {
  const float* addends;
  float factor;
  int32_t code_zero;
};
// What requantize_rows makes, with code_zero, and that then.
void requantize_and_add_rows(const SumRows& x, Scales scales, const AddedCodes& added, uint8_t zero, uint8_t* y,
                             int64_t ldy);
void requantize_and_add_rows(const SumRows& x, Scales scales, const AddedCodes& added, int8_t zero, int8_t* y,
                             int64_t ldy);
// y = x scaled, plus the bias (one for each element of a row, or null).
void scale_rows(const SumRows& x, Scales scales, const float* bias, float* y, int64_t ldy);

struct RequantizeKernels {
  template <class X, class Y>
  using Function = void (*)(const X* x, int32_t addend, Scales scales, Y zero, Y* y, int64_t n);
  template <class Y>
  using RowsFunction = void (*)(const SumRows& x, Scales scales, Y zero, Y* y, int64_t ldy);
  template <class Y>
  using AddingFunction = void (*)(const SumRows& x, Scales scales, const AddedCodes& added, Y zero, Y* y, int64_t ldy);
  Isa isa;
  Function<int32_t, uint8_t> ints_to_uint8;
  Function<int32_t, int8_t> ints_to_int8;
  Function<float, uint8_t> floats_to_uint8;
  Function<float, int8_t> floats_to_int8;
  RowsFunction<uint8_t> rows_to_uint8;
  RowsFunction<int8_t> rows_to_int8;
  AddingFunction<uint8_t> rows_and_add_to_uint8;
  AddingFunction<int8_t> rows_and_add_to_int8;
  void (*rows_to_floats)(const SumRows& x, Scales scales, const float* bias, float* y, int64_t ldy);
};

TENON_ISA_TABLES(RequantizeKernels, requantize_kernels)

}  // namespace tenon::kernels
