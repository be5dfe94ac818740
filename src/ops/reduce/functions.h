// What reductions merge, and how.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/elementwise.h"

namespace tenon::ops::reduction {

// The type that F collects elements of type T in: integers as such, unless F has logarithms.
template <typename F, typename T>
using Accumulator = std::conditional_t < !std::is_integral_v<T>,
      Compute<T>, std::conditional_t < requires {
  F::has_logarithms;
}
, double, std::conditional_t < std::is_signed_v<T>, int64_t, uint64_t >>> ;

// A result as an element: of an integer, what truncation leaves, and 0 of what is no number.
template <typename T, typename A>
T element_of(A value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<A>) {
    constexpr A low = static_cast<A>(std::numeric_limits<T>::min()),
                high = static_cast<A>(std::numeric_limits<T>::max());
    if (value != value) return T(0);
    return value >= high  ? std::numeric_limits<T>::max()
           : value <= low ? std::numeric_limits<T>::min()
                          : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename A>
A plus(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename A>
A times(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// How values are collected: merge(a, map(x)), from `start` on.
struct AsTheyAre {
  template <typename A>
  static A map(A x) {
    return x;
  }
};
struct Sum : AsTheyAre {
  static constexpr bool takes_vectors = true;
  template <typename T, typename A>
  static A start() {
    return A(0);
  }
  template <typename A>
  static A merge(A a, A b) {
    return plus(a, b);
  }
};
struct SumOfMagnitudes : Sum {
  static constexpr bool takes_vectors = false;
  template <typename A>
  static A map(A x) {
    if constexpr (std::is_floating_point_v<A>)
      return std::fabs(x);
    else if constexpr (std::is_signed_v<A>)
      return x < 0 ? static_cast<A>(0 - static_cast<uint64_t>(x)) : x;
    else
      return x;
  }
};
struct SumOfSquares : Sum {
  template <typename A>
  static A map(A x) {
    return times(x, x);
  }
};
struct LogarithmOfSum : Sum {
  static constexpr bool has_logarithms = true;
};
struct Product : AsTheyAre {
  static constexpr bool takes_vectors = true;
  template <typename T, typename A>
  static A start() {
    return A(1);
  }
  template <typename A>
  static A merge(A a, A b) {
    return times(a, b);
  }
};
struct Largest : AsTheyAre {
  static constexpr bool is_largest = true;
  template <typename T, typename A>
  static A start() {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::numeric_limits<T>::lowest());
    else
      return -std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A merge(A a, A b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Smallest : AsTheyAre {
  static constexpr bool is_largest = false;
  template <typename T, typename A>
  static A start() {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::numeric_limits<T>::max());
    else
      return std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A merge(A a, A b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

// The sum of exponentials as sum * exp(largest), so that it does not overflow.
template <typename A>
struct ExponentialSum {
  A largest = -std::numeric_limits<A>::infinity(), sum = 0;
};
struct SumOfExponentials {
  static constexpr bool has_logarithms = true;
  template <typename T, typename A>
  static ExponentialSum<A> start() {
    return {};
  }
  template <typename A>
  static ExponentialSum<A> map(A x) {
    return {x, 1};
  }
  template <typename A>
  static ExponentialSum<A> merge(ExponentialSum<A> a, ExponentialSum<A> b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * std::exp(b.largest - a.largest)};
    return {b.largest, b.sum + a.sum * std::exp(a.largest - b.largest)};
  }
};

enum class Finish { none, mean, square_root, logarithm };

template <typename A>
A finished(A total, Finish finish, int64_t count) {
  switch (finish) {
    case Finish::none:
      return total;
    case Finish::mean:
      if constexpr (std::is_integral_v<A>)
        return count ? static_cast<A>(total / static_cast<A>(count)) : A(0);
      else
        return total / static_cast<A>(count);
    case Finish::square_root:
      return static_cast<A>(std::sqrt(total));
    case Finish::logarithm:
      if constexpr (std::is_floating_point_v<A>)
        return std::log(total);
      else
        return A(0);
  }
  return total;
}

template <typename A>
A finished(ExponentialSum<A> total, Finish, int64_t) {
  return total.largest + std::log(total.sum);
}

}  // namespace tenon::ops::reduction
