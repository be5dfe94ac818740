#pragma once

#include <type_traits>

namespace tenon {

// a * b + c; of floating-point numbers rounded once, where there is an instruction for it.
template <class T>
T multiply_add(T a, T b, T c) {
#if defined(__aarch64__) || defined(__FMA__)
  if constexpr (std::is_same_v<T, double>) return __builtin_fma(a, b, c);
  if constexpr (std::is_same_v<T, float>) return __builtin_fmaf(a, b, c);
#endif
  return a * b + c;
}

}  // namespace tenon
