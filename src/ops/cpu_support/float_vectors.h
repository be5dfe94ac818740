// Loops that the compiler does not vectorise by itself: it makes branches of nested comparisons with constants.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/simd/extreme.h"

namespace tenon::ops {

using FloatVector = kernels::VectorOf<float>::Type;

// y[i] = function(x[i]), where function takes and returns a FloatVector; y may be x.
template <typename Function>
void map_vectors(const float* x, float* y, int64_t n, Function function) {
  constexpr int64_t width = sizeof(FloatVector) / sizeof(float);
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    FloatVector value;
    std::memcpy(&value, x + i, sizeof value);
    value = function(value);
    std::memcpy(y + i, &value, sizeof value);
  }
  for (; i < n; ++i) y[i] = function(FloatVector{} + x[i])[0];
}

// Within [0, 1]; NaN stays. With masks, because nested conditions are taken apart lane by lane too.
inline FloatVector unit_clamp(FloatVector value) {
  using Mask = kernels::VectorOf<int32_t>::Type;
  const FloatVector one = FloatVector{} + 1.0f;
  const Mask below = value<FloatVector{}, above = value> one;
  return (FloatVector)(((Mask)value & ~(below | above)) | ((Mask)one & above));
}

}  // namespace tenon::ops
