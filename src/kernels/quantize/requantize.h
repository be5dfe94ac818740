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

struct RequantizeKernels {
  template <class X, class Y>
  using Function = void (*)(const X* x, int32_t addend, Scales scales, Y zero, Y* y, int64_t n);
  Isa isa;
  Function<int32_t, uint8_t> ints_to_uint8;
  Function<int32_t, int8_t> ints_to_int8;
  Function<float, uint8_t> floats_to_uint8;
  Function<float, int8_t> floats_to_int8;
};

TENON_ISA_TABLES(RequantizeKernels, requantize_kernels)

}  // namespace tenon::kernels
