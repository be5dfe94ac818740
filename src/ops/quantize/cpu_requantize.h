// Sums of products of 8-bit integers as 8-bit integers again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/cpu_support/float_vectors.h"

namespace tenon::ops {

// The scale of element i is at[i * step], where step is 0 or 1.
struct Scales {
  const float* at;
  int64_t step;
};

// to[i] = from[i] + addend (which wraps around), scaled, rounded to even, plus `zero`, saturated; the lowest where the
// scale is NaN. `From` is int32_t, or float that holds whole numbers.
template <class From, class T>
void requantize(const From* from, int32_t addend, Scales scales, T zero, T* to, int64_t count) {
  using Unsigned = kernels::VectorOf<uint32_t>::Type;
  const FloatVector low = FloatVector{} + static_cast<float>(std::numeric_limits<T>::min() - zero),
                    high = FloatVector{} + static_cast<float>(std::numeric_limits<T>::max() - zero);
  // Adding it leaves no bits for a fraction, and the whole part in the lowest bits.
  const FloatVector shift = FloatVector{} + 12582912.0f;
  constexpr int64_t part = 512;
  int32_t codes[part + float_lanes];
  for (int64_t begin = 0; begin < count; begin += part) {
    const int64_t size = std::min(part, count - begin);
    auto compute = [&](int64_t i, size_t bytes) {
      IntVector sum = {};
      FloatVector scale = FloatVector{} + *scales.at;
      if constexpr (std::is_same_v<From, float>) {
        FloatVector whole = {};
        std::memcpy(&whole, from + begin + i, bytes);
        sum = __builtin_convertvector(whole, IntVector);
      } else {
        std::memcpy(&sum, from + begin + i, bytes);
      }
      if (scales.step) std::memcpy(&scale, scales.at + begin + i, bytes);
      sum = (IntVector)((Unsigned)sum + static_cast<uint32_t>(addend));
      FloatVector value = __builtin_convertvector(sum, FloatVector) * scale;
      value = choose(value > low, value, low);
      value = choose(value < high, value, high);
      const IntVector code = (IntVector)(value + shift) - (IntVector)shift + static_cast<int32_t>(zero);
      std::memcpy(codes + i, &code, sizeof code);
    };
    int64_t i = 0;
    for (; i + float_lanes <= size; i += float_lanes) compute(i, sizeof(FloatVector));
    if (i < size) compute(i, static_cast<size_t>(size - i) * sizeof(float));
    for (i = 0; i < size; ++i) to[begin + i] = static_cast<T>(codes[i]);
  }
}

}  // namespace tenon::ops
