#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/simd/extreme.h"
#include "ops/elementwise.h"

namespace tenon::ops {

// Elements that are fetched ahead where rows are read one after the other: while one ends, the next is on its way.
template <typename T>
inline constexpr int64_t read_ahead = 1024 / sizeof(T);

// The largest (or smallest) of n >= 1 adjacent elements; NaN if one is NaN.
template <bool largest, typename T>
Compute<T> extreme(const T* x, int64_t n) {
  using C = Compute<T>;
  auto pick = [](C a, C b) { return a == a && ((largest ? b > a : b < a) || b != b) ? b : a; };
  C best = static_cast<C>(x[0]);
  int64_t i = 0;
  if constexpr (std::is_same_v<T, C>) {
    // Conditional loops over lanes do not vectorise by themselves, so the lanes are written out.
    using Vector = typename kernels::VectorOf<T>::Type;
    constexpr int64_t width = kernels::vector_bytes / sizeof(T), vectors = 4;
    auto fold = [](Vector& one, const void* with) {
      Vector value;
      std::memcpy(&value, with, sizeof value);
      one = kernels::extreme_of<largest, T>(one, value);
    };
    if (n >= width * vectors) {
      Vector bests[vectors];
      std::memcpy(&bests, x, sizeof bests);
      for (i = width * vectors; i + width * vectors <= n; i += width * vectors) {
        __builtin_prefetch(x + i + read_ahead<T>);
        for (int64_t k = 0; k < vectors; ++k) fold(bests[k], x + i + k * width);
      }
      for (int64_t k = 1; k < vectors; ++k) fold(bests[0], &bests[k]);
      for (; i + width <= n; i += width) fold(bests[0], x + i);
      for (int64_t lane = 0; lane < width; ++lane) best = pick(best, bests[0][lane]);
    }
  }
  for (; i < n; ++i) best = pick(best, static_cast<C>(x[i]));
  return best;
}

template <typename C>
bool is_same_or_both_nan(C a, C b) {
  return a == b || (a != a && b != b);
}

// Where the first of the largest (or smallest) of n >= 1 adjacent elements is; of a NaN, if there is one.
template <bool largest, typename T>
int64_t first_extreme(const T* x, int64_t n) {
  using C = Compute<T>;
  const C best = extreme<largest>(x, n);
  // Whole blocks without it are passed quickly.
  constexpr int64_t block = 256;
  int64_t first = 0;
  for (; first + block <= n; first += block) {
    int found = best != best;
    for (int64_t i = 0; i < block; ++i) found |= static_cast<C>(x[first + i]) == best;
    if (found) break;
  }
  return std::find_if(x + first, x + n, [&](const T& v) { return is_same_or_both_nan(static_cast<C>(v), best); }) - x;
}

}  // namespace tenon::ops
