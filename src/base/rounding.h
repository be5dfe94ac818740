// Divisions that round up.
#pragma once

#include <type_traits>

namespace tenon {

// `value` and `step` are above 0, or `value` is 0.
template <class T>
constexpr T divide_up(T value, std::type_identity_t<T> step) {
  return (value + step - 1) / step;
}
template <class T>
constexpr T round_up(T value, std::type_identity_t<T> step) {
  return divide_up(value, step) * step;
}

}  // namespace tenon
