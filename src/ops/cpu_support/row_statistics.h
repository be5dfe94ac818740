// Sums over contiguous elements, in the vector kernels where there are some.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/channel_affine/channel_affine.h"
#include "kernels/layer_norm/layer_norm.h"

namespace tenon::ops {

inline float row_sum(const float* x, int64_t n) { return kernels::layer_norm_kernels().sum(x, n); }
inline double row_sum(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// The sum of (x - shift)^2.
inline float row_sum_of_squares(const float* x, float shift, int64_t n) {
  return kernels::layer_norm_kernels().sum_of_squares(x, shift, n);
}
inline double row_sum_of_squares(const double* x, double shift, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - shift) * (x[i] - shift);
  return sum;
}

// y = x * scale + shift.
inline void scale_row(const float* x, float* y, int64_t n, float scale, float shift) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float scales[kernels::affine_period], shifts[kernels::affine_period];
  std::fill_n(scales, kernels::affine_period, scale);
  std::fill_n(shifts, kernels::affine_period, shift);
  kernels::f32_affine(x, scales, shifts, -infinity, infinity, y, n);
}
inline void scale_row(const double* x, double* y, int64_t n, double scale, double shift) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

}  // namespace tenon::ops
