// y = x * scale + shift with numbers that repeat: those of a channel, or of a block of them.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// The scales and shifts that repeat. Fewer that divide it are given several times over.
inline constexpr int affine_period = 16;

// y[i] = x[i] * scale[i % affine_period] + shift[i % affine_period], raised to lo and lowered to hi, for i < n; NaN
// stays. y may be x. Single-threaded: callers split the arrays.
void f32_affine(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n);

// The same with one scale and one shift, and no bounds.
void f32_affine_row(const float* x, float scale, float shift, float* y, int64_t n);

struct AffineKernels {
  Isa isa;
  void (*run)(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n);
  void (*run_row)(const float* x, float scale, float shift, float* y, int64_t n);
};

TENON_ISA_TABLES(AffineKernels, affine_kernels)

}  // namespace tenon::kernels
