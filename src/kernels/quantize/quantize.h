// Floats as integers of 8 and 16 bits.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// y[i] = x[i] / scale rounded to even, plus zero, saturated, for i < n; NaN gives the lowest value. `zero` is a value
// of y's type. Single-threaded: callers split the array.
void quantize(const float* x, uint8_t* y, int64_t n, float scale, float zero);
void quantize(const float* x, int8_t* y, int64_t n, float scale, float zero);
void quantize(const float* x, uint16_t* y, int64_t n, float scale, float zero);
void quantize(const float* x, int16_t* y, int64_t n, float scale, float zero);

// The lowest and the highest of n elements and 0; NaN does not count.
std::pair<float, float> range_with_zero(const float* x, int64_t n);

// The scale and the zero point of uint8 for numbers in such a range, as DynamicQuantizeLinear has them.
struct ByteQuantization {
  float scale, zero;
};
ByteQuantization quantization_of(std::pair<float, float> range_with_zero);

struct QuantizeKernels {
  template <class T>
  using Function = void (*)(const float* x, T* y, int64_t n, float scale, float zero);
  Isa isa;
  Function<uint8_t> to_uint8;
  Function<int8_t> to_int8;
  Function<uint16_t> to_uint16;
  Function<int16_t> to_int16;
  std::pair<float, float> (*range)(const float* x, int64_t n);
};

TENON_ISA_TABLES(QuantizeKernels, quantize_kernels)

}  // namespace tenon::kernels
