// Softmax of one row, and of columns; a file per instruction set instantiates it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math/functions.h"
#include "kernels/softmax/softmax.h"

namespace tenon::kernels {

template <class Arch>
struct SoftmaxRow {
  using M = MathFunctions<Arch>;
  using S = typename M::S;
  using F = typename M::F;
  static constexpr int width = S::width;

  static float highest(const float* x, int64_t n) {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    F a = S::set(lowest), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      a = S::at_least(a, S::load(x + i));
      b = S::at_least(b, S::load(x + i + width));
      c = S::at_least(c, S::load(x + i + 2 * width));
      d = S::at_least(d, S::load(x + i + 3 * width));
    }
    a = S::at_least(S::at_least(a, b), S::at_least(c, d));
    for (; i + width <= n; i += width) a = S::at_least(a, S::load(x + i));
    if (i < n && n >= width) {
      a = S::at_least(a, S::load(x + n - width));  // some of them once more
      i = n;
    }
    float result = S::highest(a);
    for (; i < n; ++i) result = x[i] > result ? x[i] : result;
    return result;
  }

  static constexpr int at_once = Arch::at_once.of_exponentials;

  template <bool Store, int count>
  [[gnu::always_inline]] static void add_terms(const float* x, float shift, float* y, F (&sums)[at_once]) {
    F e[count];
#pragma GCC unroll 6
    for (int u = 0; u < count; ++u) e[u] = S::load(x + u * width) - shift;
    M::exp_terms(e);
#pragma GCC unroll 6
    for (int u = 0; u < count; ++u) {
      if (Store) S::store(y + u * width, e[u]);
      sums[u] += e[u];
    }
  }

  // The sum of exp(x - shift); stores the terms where `y` is not null.
  template <bool Store>
  static float sum_of_exp(const float* x, float shift, float* y, int64_t n) {
    F sums[at_once] = {};
    int64_t i = 0;
    for (; i + at_once * width <= n; i += at_once * width) {
      for (int64_t at = 0; at < at_once * width; at += 16) __builtin_prefetch(x + n + i + at);  // the next row
      add_terms<Store, at_once>(x + i, shift, y + i, sums);
    }
    if constexpr (at_once > 4) {
      for (; i + 4 * width <= n; i += 4 * width) add_terms<Store, 4>(x + i, shift, y + i, sums);
    }
    for (; i + 2 * width <= n; i += 2 * width) add_terms<Store, 2>(x + i, shift, y + i, sums);
    for (; i + width <= n; i += width) add_terms<Store, 1>(x + i, shift, y + i, sums);
    for (int u = 0; u < at_once; u += 2) sums[u] += sums[u + 1];
    for (int u = 2; u < at_once; u += 2) sums[0] += sums[u];
    float total = S::sum(sums[0]);
    if (i == n) return total;
    F e[] = {S::load_part(x + i, n - i) - shift};
    M::exp_terms(e);
    if (Store) S::store_part(y + i, e[0], n - i);
    for (int64_t j = 0; j < n - i; ++j) total += e[0][j];
    return total;
  }

  static void softmax(const float* x, float* y, int64_t n) {
    const float scale = 1.0f / sum_of_exp<true>(x, highest(x, n), y, n);
    int64_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      F v[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) v[u] = S::load(y + i + u * width) * scale;
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) S::store(y + i + u * width, v[u]);
    }
    for (; i + width <= n; i += width) S::store(y + i, S::load(y + i) * scale);
    for (; i < n; ++i) y[i] *= scale;
  }

  static void log_softmax(const float* x, float* y, int64_t n) {
    const float shift = highest(x, n);
    const float log_sum = std::log(sum_of_exp<false>(x, shift, nullptr, n));
    int64_t i = 0;
    for (; i + width <= n; i += width) S::store(y + i, (S::load(x + i) - shift) - log_sum);
    for (; i < n; ++i) y[i] = (x[i] - shift) - log_sum;
  }

  // Calls of_vector(i) for whole vectors of `count` floats, and of_part(i) for the rest.
  template <class Vector, class Part>
  [[gnu::always_inline]] static void over(int64_t count, Vector of_vector, Part of_part) {
    int64_t i = 0;
    for (; i + width <= count; i += width) of_vector(i);
    if (i < count) of_part(i);
  }

  // Rows of so few columns that several fill a vector are taken as one row of that many times the columns, whose sums
  // are added up at the end.
  template <bool Logarithm>
  static void columns(const float* x, float* y, int64_t n, int64_t stride, int64_t columns) {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    alignas(64) float highest[most_softmax_columns + width], sums[most_softmax_columns + width];
    const int64_t together = columns == stride ? std::clamp<int64_t>(most_softmax_columns / columns, 1, n) : 1;
    const int64_t all = together * columns;
    const auto each_row = [&](auto of_row) {
      for (int64_t i = 0; i < n; i += together) of_row(i * stride, std::min(together, n - i) * columns);
    };
    // What the columns have, of what is known of those that stand for them.
    const auto gather = [&](float* of_all, auto combine) {
      for (int64_t k = columns; k < all; k += columns)
        for (int64_t j = 0; j < columns; ++j) of_all[j] = combine(of_all[j], of_all[k + j]);
    };
    const auto spread = [&](float* of_all) {
      for (int64_t k = columns; k < all + width; ++k) of_all[k] = of_all[k - columns];
    };

    std::fill(highest, highest + all, lowest);
    std::fill(sums, sums + all, 0.0f);
    each_row([&](int64_t at, int64_t count) {
      over(
          count, [&](int64_t i) { S::store(highest + i, S::at_least(S::load(highest + i), S::load(x + at + i))); },
          [&](int64_t i) {
            for (; i < count; ++i) highest[i] = x[at + i] > highest[i] ? x[at + i] : highest[i];
          });
    });
    gather(highest, [](float a, float b) { return b > a ? b : a; });
    spread(highest);
    each_row([&](int64_t at, int64_t count) {
      over(
          count,
          [&](int64_t i) {
            F e[] = {S::load(x + at + i) - S::load(highest + i)};
            M::exp_terms(e);
            if (!Logarithm) S::store(y + at + i, e[0]);
            S::store(sums + i, S::load(sums + i) + e[0]);
          },
          [&](int64_t i) {
            F e[] = {S::load_part(x + at + i, count - i) - S::load(highest + i)};
            M::exp_terms(e);
            if (!Logarithm) S::store_part(y + at + i, e[0], count - i);
            for (int64_t j = 0; j < count - i; ++j) sums[i + j] += e[0][j];
          });
    });
    gather(sums, [](float a, float b) { return a + b; });
    for (int64_t k = 0; k < columns; ++k) sums[k] = Logarithm ? std::log(sums[k]) : 1.0f / sums[k];
    spread(sums);
    each_row([&](int64_t at, int64_t count) {
      const auto result = [&](int64_t i, F from) {
        return Logarithm ? (from - S::load(highest + i)) - S::load(sums + i) : from * S::load(sums + i);
      };
      const float* from = Logarithm ? x : y;
      over(
          count, [&](int64_t i) { S::store(y + at + i, result(i, S::load(from + at + i))); },
          [&](int64_t i) { S::store_part(y + at + i, result(i, S::load_part(from + at + i, count - i)), count - i); });
    });
  }

  static constexpr SoftmaxKernels table() { return {Arch::isa, softmax, log_softmax, columns<false>, columns<true>}; }
};

}  // namespace tenon::kernels
