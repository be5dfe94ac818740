// Maxima and minima in which NaN wins, for 16-byte vectors of the compiler's baseline.
#pragma once

#include <type_traits>

#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace tenon::kernels {

template <class T>
struct VectorOf {
  using Type [[gnu::vector_size(16)]] = T;
};

// The larger (or smaller) of `best` and `value`, lane by lane; NaN where one is NaN.
template <bool largest, class T>
inline typename VectorOf<T>::Type extreme_of(typename VectorOf<T>::Type best, typename VectorOf<T>::Type value) {
#ifdef __aarch64__
  if constexpr (std::is_same_v<T, float>) {
    const auto a = (float32x4_t)best, b = (float32x4_t)value;
    return (typename VectorOf<T>::Type)(largest ? vmaxq_f32(a, b) : vminq_f32(a, b));
  }
#endif
  if constexpr (std::is_floating_point_v<T>) {
    const auto keep = (largest ? best > value : best < value) | (best != best);
    return keep ? best : value;
  } else {
    return (largest ? best > value : best < value) ? best : value;
  }
}

}  // namespace tenon::kernels
