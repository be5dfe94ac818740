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

// The codes of one result, before they are narrowed. `From` is int32_t, or float that holds whole numbers.
template <class From, class T>
class Requantizer {
 public:
  Requantizer(int32_t addend, T zero) : addend_(static_cast<uint32_t>(addend)), zero_(zero) {}

  IntVector operator()(const From* from, size_t bytes, FloatVector scale) const {
    using Unsigned = kernels::VectorOf<uint32_t>::Type;
    IntVector sum = {};
    if constexpr (std::is_same_v<From, float>) {
      FloatVector whole = {};
      std::memcpy(&whole, from, bytes);
      sum = __builtin_convertvector(whole, IntVector);
    } else {
      std::memcpy(&sum, from, bytes);
    }
    sum = (IntVector)((Unsigned)sum + addend_);
    const FloatVector value = __builtin_convertvector(sum, FloatVector) * scale;
    return (IntVector)(kernels::extreme_of<false, float>(choose(value > low_, value, low_), high_) + shift_) - offset_;
  }

 private:
  uint32_t addend_;
  int32_t zero_;
  FloatVector low_ = FloatVector{} + static_cast<float>(std::numeric_limits<T>::min() - zero_),
              high_ = FloatVector{} + static_cast<float>(std::numeric_limits<T>::max() - zero_);
  // Adding it leaves no bits for a fraction, and the whole part in the lowest bits.
  FloatVector shift_ = FloatVector{} + 12582912.0f;
  IntVector offset_ = (IntVector)shift_ - zero_;
};

// to[i] = from[i] + addend (which wraps around), scaled, rounded to even, plus `zero`, saturated; the lowest where the
// scale is NaN.
template <class From, class T>
void requantize(const From* from, int32_t addend, Scales scales, T zero, T* to, int64_t count) {
  const Requantizer<From, T> codes_of(addend, zero);
  const FloatVector one_scale = FloatVector{} + *scales.at;
  constexpr int64_t part = 512;
  int32_t codes[part + float_lanes];
  for (int64_t begin = 0; begin < count; begin += part) {
    const int64_t size = std::min(part, count - begin), whole = size / float_lanes * float_lanes;
    const auto compute = [&](int64_t i, size_t bytes) {
      FloatVector scale = one_scale;
      if (scales.step) std::memcpy(&scale, scales.at + begin + i, bytes);
      const IntVector code = codes_of(from + begin + i, bytes, scale);
      std::memcpy(codes + i, &code, sizeof code);
    };
    if (scales.step == 0) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < whole; i += float_lanes) {
        const IntVector code = codes_of(from + begin + i, sizeof(FloatVector), one_scale);
        std::memcpy(codes + i, &code, sizeof code);
      }
    } else {
      for (int64_t i = 0; i < whole; i += float_lanes) compute(i, sizeof(FloatVector));
    }
    if (whole < size) compute(whole, static_cast<size_t>(size - whole) * sizeof(float));
    for (int64_t i = 0; i < size; ++i) to[begin + i] = static_cast<T>(codes[i]);
  }
}

}  // namespace tenon::ops
