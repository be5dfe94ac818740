#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/elementwise.h"

namespace tenon::ops {

// The largest (or smallest) of n >= 1 adjacent elements; NaN if one is NaN.
template <bool largest, typename T>
Compute<T> extreme(const T* x, int64_t n) {
  using C = Compute<T>;
  auto pick = [](C a, C b) { return a == a && ((largest ? b > a : b < a) || b != b) ? b : a; };
  C best = static_cast<C>(x[0]);
  int64_t i = 0;
  if constexpr (std::is_same_v<T, C>) {
    // Conditional loops over lanes do not vectorise by themselves, so the lanes are written out.
    constexpr int64_t lanes = 64 / sizeof(T);
    typedef T Vector __attribute__((vector_size(64)));
    if (n >= lanes) {
      Vector bests, values;
      std::memcpy(&bests, x, sizeof bests);
      for (i = lanes; i + lanes <= n; i += lanes) {
        std::memcpy(&values, x + i, sizeof values);
        if constexpr (largest)
          bests = (values > bests) | (values != values) ? values : bests;
        else
          bests = (values < bests) | (values != values) ? values : bests;
      }
      for (int64_t lane = 0; lane < lanes; ++lane) best = pick(best, bests[lane]);
    }
  }
  for (; i < n; ++i) best = pick(best, static_cast<C>(x[i]));
  return best;
}

}  // namespace tenon::ops
