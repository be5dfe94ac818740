// Sums of products of 8-bit integers as 8-bit integers again.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon::ops {

// to[i] = from[i] + addend (which wraps around), scaled by scale(i), rounded to even, plus `zero`, saturated. `From` is
// int32_t, or float that holds whole numbers.
template <class From, class T, class Scale>
void requantize(const From* __restrict from, int32_t addend, Scale scale, T zero, T* __restrict to, int64_t count) {
  constexpr float low = static_cast<float>(std::numeric_limits<T>::min()),
                  high = static_cast<float>(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < count; ++i) {
    const auto sum =
        static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(from[i])) + static_cast<uint32_t>(addend));
    const float value = std::nearbyint(static_cast<float>(sum) * scale(i)) + static_cast<float>(zero);
    to[i] = static_cast<T>(static_cast<int32_t>(value > low ? (value < high ? value : high) : low));
  }
}

}  // namespace tenon::ops
