// Which value is the maximum of a window.
#pragma once

#include <limits>

namespace tenon::kernels {

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// Whether `value` takes the place of `best`; NaN does, and is never replaced.
template <class T>
constexpr bool wins(T value, T best) {
  return (value > best) | (value != value);
}

}  // namespace tenon::kernels
