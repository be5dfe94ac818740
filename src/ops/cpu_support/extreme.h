#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/simd/extreme.h"
#include "ops/elementwise.h"

namespace tenon::ops {

// Fetches ahead where rows are read one after the other: while one ends, the next is on its way. What comes later goes
// into the second cache: what is read next would have to leave the first for it.
inline void fetch_ahead(const void* x) {
  constexpr int64_t near = 1024, far = 8192;
  __builtin_prefetch(static_cast<const char*>(x) + near);
  __builtin_prefetch(static_cast<const char*>(x) + far, 0, 2);
}

// The largest (or smallest) of n >= 4 floats, where that is few; NaN if one is NaN.
template <bool largest>
inline float short_extreme(const float* x, int64_t n) {
  using Vector [[gnu::vector_size(16)]] = float;
  const auto load = [](const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const auto pick = [](Vector a, Vector b) {
#ifdef __aarch64__
    return kernels::extreme_of<largest, float>(a, b);
#else
    return ((largest ? a > b : a < b) | (a != a)) ? a : b;
#endif
  };
  Vector best = load(x);
  for (int64_t i = 4; i < n; i += 4) best = pick(best, load(x + std::min(i, n - 4)));
  best = pick(best, __builtin_shufflevector(best, best, 2, 3, 0, 1));
  return pick(best, __builtin_shufflevector(best, best, 1, 0, 3, 2))[0];
}

// The same of n >= 1 adjacent elements of any type.
template <bool largest, bool fetches = true, typename T>
Compute<T> extreme(const T* x, int64_t n) {
  using C = Compute<T>;
  auto pick = [](C a, C b) { return a == a && ((largest ? b > a : b < a) || b != b) ? b : a; };
  C best = static_cast<C>(x[0]);
  int64_t i = 0;
  if constexpr (std::is_same_v<T, C>) {
    // Conditional loops over lanes do not vectorise by themselves, so the lanes are written out.
    using Vector = typename kernels::VectorOf<T>::Type;
    constexpr int64_t width = kernels::vector_bytes / sizeof(T), vectors = 4;
    const auto load = [](const T* from) {
      Vector value;
      std::memcpy(&value, from, sizeof value);
      return value;
    };
    const auto fold = [](Vector& one, Vector with) { one = kernels::extreme_of<largest, T>(one, with); };
    if (n >= width * vectors) {
      // Each by itself: an array that is copied as a whole would stay in memory.
      Vector bests[vectors];
#pragma GCC unroll 4
      for (int64_t k = 0; k < vectors; ++k) bests[k] = load(x + k * width);
      for (i = width * vectors; i + width * vectors <= n; i += width * vectors) {
        if constexpr (fetches) fetch_ahead(x + i);
#pragma GCC unroll 4
        for (int64_t k = 0; k < vectors; ++k) fold(bests[k], load(x + i + k * width));
      }
#pragma GCC unroll 4
      for (int64_t k = 1; k < vectors; ++k) fold(bests[0], bests[k]);
      for (; i + width <= n; i += width) fold(bests[0], load(x + i));
      if (i < n) fold(bests[0], load(x + n - width));  // some of them once more
      if constexpr (std::is_same_v<T, float>) return kernels::extreme_of_lanes<largest>(bests[0]);
      i = n;
      T lanes[width];
      std::memcpy(lanes, &bests[0], sizeof lanes);
      for (int64_t half = width / 2; half > 0; half /= 2) {
        for (int64_t lane = 0; lane < half; ++lane) lanes[lane] = pick(lanes[lane], lanes[lane + half]);
      }
      best = lanes[0];
    }
  }
  for (; i < n; ++i) best = pick(best, static_cast<C>(x[i]));
  return best;
}

template <typename C>
bool is_same_or_both_nan(C a, C b) {
  return a == b || (a != a && b != b);
}

// Whether one of so many adjacent elements equals `value`.
template <int64_t count, typename T>
bool has_equal(const T* x, Compute<T> value) {
  int found = 0;
  for (int64_t i = 0; i < count; ++i) found |= static_cast<Compute<T>>(x[i]) == value;
  return found != 0;
}

// Where the first (or last) of the largest (or smallest) of n >= 1 adjacent elements is; of NaNs, if there are any.
template <bool largest, bool last = false, typename T>
int64_t find_extreme(const T* x, int64_t n) {
  using C = Compute<T>;
  const C best = extreme<largest>(x, n);
  int64_t begin = 0, end = n;
  // Blocks without it are passed quickly: long ones, then short ones.
  const auto pass = [&]<int64_t block>() {
    while (end - begin >= block && !has_equal<block>(last ? x + end - block : x + begin, best))
      last ? end -= block : begin += block;
  };
  if (best == best) {
    pass.template operator()<256>();
    pass.template operator()<16>();
  }
  const auto differs = [&](int64_t i) { return !is_same_or_both_nan(static_cast<C>(x[i]), best); };
  if constexpr (last) {
    while (differs(end - 1)) --end;
    return end - 1;
  } else {
    while (differs(begin)) ++begin;
    return begin;
  }
}

}  // namespace tenon::ops
