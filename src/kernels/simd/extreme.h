// Maxima and minima in which NaN wins, for vectors of the compiler's baseline.
#pragma once

#include <type_traits>

namespace tenon::kernels {

#ifdef __AVX2__
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class T>
struct VectorOf {
  using Type [[gnu::vector_size(vector_bytes)]] = T;
};

#ifdef __AVX2__
// The larger (or smaller) of `best` and `value`, lane by lane; `value` where one is NaN.
template <bool largest, class T>
inline typename VectorOf<T>::Type extreme_or_value(typename VectorOf<T>::Type best, typename VectorOf<T>::Type value) {
  if constexpr (std::is_same_v<T, float>)
    return largest ? __builtin_ia32_maxps256(best, value) : __builtin_ia32_minps256(best, value);
  else
    return largest ? __builtin_ia32_maxpd256(best, value) : __builtin_ia32_minpd256(best, value);
}
#endif

// The larger (or smaller) of `best` and `value`, lane by lane; NaN where one is NaN.
template <bool largest, class T>
inline typename VectorOf<T>::Type extreme_of(typename VectorOf<T>::Type best, typename VectorOf<T>::Type value) {
#ifdef __aarch64__
  // Not through <arm_neon.h>: in files with a precompiled header, gcc forgets their options after its pragmas.
  if constexpr (std::is_same_v<T, float>) {
    typename VectorOf<T>::Type result;
    if constexpr (largest)
      asm("fmax %0.4s, %1.4s, %2.4s" : "=w"(result) : "w"(best), "w"(value));
    else
      asm("fmin %0.4s, %1.4s, %2.4s" : "=w"(result) : "w"(best), "w"(value));
    return result;
  }
#endif
#ifdef __AVX2__
  // The instructions return the second where either is NaN, and all bits set are NaN too.
  if constexpr (std::is_floating_point_v<T>) {
    using Vector = typename VectorOf<T>::Type;
    const auto lost = best != best;
    return (Vector)((decltype(lost))extreme_or_value<largest, T>(best, value) | lost);
  }
#endif
  if constexpr (std::is_floating_point_v<T>) {
    const auto keep = (largest ? best > value : best < value) | (best != best);
    return keep ? best : value;
  } else {
    return (largest ? best > value : best < value) ? best : value;
  }
}

// Whether extreme_of_numbers is cheaper than extreme_of, and may lose NaN.
#ifdef __AVX2__
template <class T>
inline constexpr bool numbers_are_cheaper = std::is_floating_point_v<T>;
#else
template <class T>
inline constexpr bool numbers_are_cheaper = false;
#endif

// The same where no lane is NaN.
template <bool largest, class T>
inline typename VectorOf<T>::Type extreme_of_numbers(typename VectorOf<T>::Type best,
                                                     typename VectorOf<T>::Type value) {
#ifdef __AVX2__
  if constexpr (numbers_are_cheaper<T>) return extreme_or_value<largest, T>(best, value);
#endif
  return extreme_of<largest, T>(best, value);
}

// The largest (or smallest) of all lanes; NaN if one is NaN.
template <bool largest>
inline float extreme_of_lanes(VectorOf<float>::Type v) {
#ifdef __AVX2__
  // Looked for once.
  if (__builtin_ia32_movmskps256((VectorOf<float>::Type)(v != v))) return __builtin_nanf("");
  v = extreme_or_value<largest, float>(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
  v = extreme_or_value<largest, float>(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
  v = extreme_or_value<largest, float>(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6));
#else
  v = extreme_of<largest, float>(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
  v = extreme_of<largest, float>(v, __builtin_shufflevector(v, v, 1, 0, 3, 2));
#endif
  return v[0];
}

// `value`, or the bound where it is beyond: at least the bound (or at most). For bounds that are not NaN; NaN stays.
template <bool at_least>
inline VectorOf<float>::Type bounded_by(VectorOf<float>::Type bound, VectorOf<float>::Type value) {
#ifdef __AVX2__
  return extreme_or_value<at_least, float>(bound, value);
#else
  return extreme_of<at_least, float>(value, bound);
#endif
}

}  // namespace tenon::kernels
