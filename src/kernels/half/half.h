// Arrays of half precision floats (IEEE binary16) as floats and back.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// y[i] = x[i] for i < n, rounded to nearest with ties to even. Single-threaded: callers split the array.
void f32_to_f16(const float* x, uint16_t* y, int64_t n);
void f16_to_f32(const uint16_t* x, float* y, int64_t n);

struct HalfKernels {
  Isa isa;
  void (*to_half)(const float* x, uint16_t* y, int64_t n);
  void (*to_float)(const uint16_t* x, float* y, int64_t n);
};

TENON_ISA_TABLES(HalfKernels, half_kernels)

}  // namespace tenon::kernels
