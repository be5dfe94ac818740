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

// The same for planes of `size` elements that follow each other, of images with so many channels each: scale and shift
// have affine_period numbers for each channel.
struct AffinePlanes {
  const float *x, *scale, *shift;
  float lo, hi;
  float* y;
  int64_t size, channels;
};
// Planes [begin, end).
void f32_affine_planes(const AffinePlanes& planes, int64_t begin, int64_t end);

struct AffineKernels {
  Isa isa;
  void (*run)(const AffinePlanes& planes, int64_t begin, int64_t end);
};

TENON_ISA_TABLES(AffineKernels, affine_kernels)

}  // namespace tenon::kernels
