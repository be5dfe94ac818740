// The passes over one row; a file per instruction set instantiates them.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/whole_lines.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct LayerNormRow {
  using S = Simd<Arch>;
  using F = typename S::F;
  static constexpr int width = S::width;
  static constexpr int64_t floats_ahead = 2048;

  // Brings `count` floats of the next row near: into the second cache, as the first one may have no room for it.
  [[gnu::always_inline]] static void fetch(const float* next, int count) {
    constexpr int line = 16;
    for (int at = 0; at < count; at += line) __builtin_prefetch(next + at, 0, 2);
  }

  // Adds up term(x[i]) in several chains.
  template <class Term>
  [[gnu::always_inline]] static float add_up(const float* x, int64_t n, Term term) {
    constexpr int chains = Arch::at_once.of_normalizations;
    F acc[chains] = {};
    int64_t i = 0;
    for (; i + chains * width <= n; i += chains * width) {
#pragma GCC unroll 8
      for (int u = 0; u < chains; ++u) acc[u] = term(S::load(x + i + u * width), acc[u]);
    }
    for (; i + width <= n; i += width) acc[0] = term(S::load(x + i), acc[0]);
#pragma GCC unroll 4
    for (int u = 4; u < chains; ++u) acc[u - 4] += acc[u];
    float total = S::sum((acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (; i < n; ++i) total += term(S::set(x[i]), F{})[0];
    return total;
  }

  // Vectors that are worked on at once, operation by operation: a core executes more of them in a cycle when none waits
  // for the one before it.
  static constexpr int together = Arch::at_once.of_normalizations;

  // What follows is computed after this.
  [[gnu::always_inline]] static void in_order(F& v) {
    if constexpr (requires { Arch::in_order(v); }) Arch::in_order(v);
  }

  struct Sums {
    float values, squares;
  };

  // The sums of a row while it is read. Those of values are left out where the mean is not subtracted.
  template <bool Centered>
  struct RowSums {
    static constexpr int chains = 4;
    F values[chains] = {}, squares[chains] = {};

    [[gnu::always_inline]] void add(F v, int chain) {
      if constexpr (Centered) values[chain] += v;
      squares[chain] = S::fma(v, v, squares[chain]);
    }
    [[gnu::always_inline]] void add_vectors(const float* x) {
#pragma GCC unroll 8
      for (int u = 0; u < together; ++u) add(S::load(x + u * width), u % chains);
#pragma GCC unroll 4
      for (int u = 0; u < chains; ++u) in_order(values[u]), in_order(squares[u]);
    }
    // With the rest of the row, from i on.
    [[gnu::always_inline]] Sums total(const float* x, int64_t i, int64_t n) {
      for (; i + width <= n; i += width) add(S::load(x + i), 0);
      Sums result{S::sum((values[0] + values[1]) + (values[2] + values[3])),
                  S::sum((squares[0] + squares[1]) + (squares[2] + squares[3]))};
      for (; i < n; ++i) result.values += x[i], result.squares += x[i] * x[i];
      return result;
    }
  };

  // Of a whole row; meanwhile n floats of `later` are brought near.
  template <bool Centered>
  [[gnu::always_inline]] static Sums sums_of(const float* x, int64_t n, const float* later) {
    RowSums<Centered> sums;
    int64_t i = 0;
    for (; i + together * width <= n; i += together * width) {
      fetch(later + i, together * width);
      sums.add_vectors(x + i);
    }
    return sums.total(x, i, n);
  }

  static float sum(const float* x, int64_t n) {
    return add_up(x, n, [](F v, F acc) { return acc + v; });
  }

  template <bool Two>
  static float add_with(const float* x, const float* a, const float* b, float* y, int64_t n) {
    F acc[2] = {};
    int64_t i = 0;
    const auto part = [&](int64_t at) {
      F v = S::load(x + at) + S::load(a + at);
      if (Two) v += S::load(b + at);
      S::store(y + at, v);
      return v;
    };
    for (; i + 2 * width <= n; i += 2 * width) {
      acc[0] += part(i);
      acc[1] += part(i + width);
    }
    for (; i + width <= n; i += width) acc[0] += part(i);
    float total = S::sum(acc[0] + acc[1]);
    for (; i < n; ++i) {
      const float v = Two ? x[i] + a[i] + b[i] : x[i] + a[i];
      y[i] = v;
      total += v;
    }
    return total;
  }

  static float add(const float* x, const float* a, const float* b, float* y, int64_t n) {
    return b ? add_with<true>(x, a, b, y, n) : add_with<false>(x, a, nullptr, y, n);
  }

  [[gnu::always_inline]] static float squares_around(float shift, const float* x, int64_t n) {
    return add_up(x, n, [shift](F v, F acc) { return S::fma(v - shift, v - shift, acc); });
  }
  static float sum_of_squares(const float* x, float shift, int64_t n) { return squares_around(shift, x, n); }

  // What becomes of some floats of a row.
  template <bool Scale, bool Bias>
  struct Normalization {
    float shift, factor;
    const float *scale, *bias;

    template <class Load>
    [[gnu::always_inline]] F scaled(F v, const Load& load) const {
      if (Scale && Bias) return S::fma(v, load(scale), load(bias));
      if (Scale) v *= load(scale);
      if (Bias) v += load(bias);
      return v;
    }
    [[gnu::always_inline]] void vectors(const float* x, int64_t at, F (&v)[together]) const {
      const auto each = [&v](auto function) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (int u = 0; u < together; ++u) v[u] = function(u);
#pragma GCC unroll 8
        for (int u = 0; u < together; ++u) in_order(v[u]);
      };
      each([&](int u) __attribute__((always_inline)) { return S::load(x + at + u * width) - shift; });
      each([&](int u) __attribute__((always_inline)) { return v[u] * factor; });
      each([&](int u) __attribute__((always_inline)) {
        return scaled(v[u], [at, u](const float* p) { return S::load(p + at + u * width); });
      });
    }
    [[gnu::always_inline]] static void store(float* y, const F (&v)[together]) {
      if constexpr (requires { Arch::store_in_order(y, v[0]); }) {
#pragma GCC unroll 8
        for (int u = 0; u < together; ++u) Arch::store_in_order(y + u * width, v[u]);
      } else if constexpr (sizeof(F) == sizeof(Bytes16)) {
#pragma GCC unroll 2
        for (int u = 0; u < together; u += 4)
          store_line(y + u * width, (Bytes16)v[u], (Bytes16)v[u + 1], (Bytes16)v[u + 2], (Bytes16)v[u + 3]);
      } else {
#pragma GCC unroll 4
        for (int u = 0; u < together; ++u) S::store(y + u * width, v[u]);
      }
    }
    // The rest of a row, from i on.
    [[gnu::always_inline]] void finish(const float* x, float* y, int64_t i, int64_t n) const {
      for (; i + width <= n; i += width) {
        const auto load = [i](const float* p) { return S::load(p + i); };
        S::store(y + i, scaled((load(x) - shift) * factor, load));
      }
      if (i == n) return;
      const auto load = [i, n](const float* p) { return S::load_part(p + i, n - i); };
      S::store_part(y + i, scaled((load(x) - shift) * factor, load), n - i);
    }
    // A whole row; with Fetch, what lies behind it is brought near.
    template <bool Fetch = false>
    [[gnu::always_inline]] void row(const float* x, float* y, int64_t n) const {
      int64_t i = 0;
      for (F v[together]; i + together * width <= n; i += together * width) {
        vectors(x, i, v);
        store(y + i, v);
        if (Fetch) fetch(x + n + i, together * width);
      }
      finish(x, y, i, n);
    }
  };

  template <bool Scale, bool Bias>
  static void apply_to_row(const float* x, float* y, int64_t n, float shift, float factor, const float* scale,
                           const float* bias) {
    Normalization<Scale, Bias>{shift, factor, scale, bias}.template row<true>(x, y, n);
  }

  static void apply(const float* x, float* y, int64_t n, float shift, float factor, const float* scale,
                    const float* bias) {
    const auto kernel = scale ? (bias ? apply_to_row<true, true> : apply_to_row<true, false>)
                              : (bias ? apply_to_row<false, true> : apply_to_row<false, false>);
    kernel(x, y, n, shift, factor, scale, bias);
  }

  // What a row is normalised with. `share` is one divided by n.
  struct Statistics {
    float mean, factor;
  };

  template <bool Centered>
  [[gnu::always_inline]] static Statistics statistics_of(const Sums& sums, const float* x, int64_t n, float share,
                                                         float epsilon) {
    float mean = 0, squares = sums.squares;
    if constexpr (Centered) {
      mean = sums.values * share, squares -= sums.values * mean;
      // Far from zero little is left of the difference: then squares are those of values from which the mean is
      // subtracted.
      if (!(sums.values * mean <= 4 * squares)) squares = squares_around(mean, x, n);
    }
    return {mean, 1.0f / std::sqrt(squares * share + epsilon)};
  }

  // Normalises the row x and returns the sums of the next one.
  template <bool Centered, bool Scale, bool Bias>
  [[gnu::always_inline]] static Sums row_and_next_sums(const Normalization<Scale, Bias>& normalized, const float* x,
                                                       float* y, int64_t n) {
    const float* next = x + n;
    if constexpr (Arch::isa != Isa::neon && Arch::isa != Isa::sve256) {
      normalized.row(x, y, n);
      return sums_of<Centered>(next, n, next + std::max<int64_t>(n, floats_ahead));
    }
    // Both at once, so that memory is read and written all the time.
    RowSums<Centered> sums;
    int64_t i = 0;
    for (F v[together]; i + together * width <= n; i += together * width) {
      fetch(next + i + floats_ahead, together * width);
      normalized.vectors(x, i, v);
      sums.add_vectors(next + i);
      normalized.store(y + i, v);
    }
    normalized.finish(x, y, i, n);
    return sums.total(next, i, n);
  }

  // All in one, without calls: registers that are stored between rows would keep the core from writing whole lines
  // without reading them first.
  template <bool Centered, bool Scale, bool Bias>
  static void normalize_with(const NormRows& call, int64_t begin, int64_t end) {
    if (begin >= end) return;
    const auto [n, scale, bias, epsilon] = std::tuple(call.n, call.scale, call.bias, call.epsilon);
    const float* x = call.x + begin * n;
    float* y = call.y + begin * n;
    const float share = 1.0f / static_cast<float>(n);
    Sums sums = sums_of<Centered>(x, n, x + n);
    for (int64_t i = begin; i < end; ++i, x += n, y += n) {
      const auto [mean, factor] = statistics_of<Centered>(sums, x, n, share, epsilon);
      const Normalization<Scale, Bias> normalized{mean, factor, scale, bias};
      if (i + 1 < end)
        sums = row_and_next_sums<Centered>(normalized, x, y, n);
      else
        normalized.row(x, y, n);
      if (Centered && call.mean) call.mean[i] = mean;
      if (call.inverse_deviation) call.inverse_deviation[i] = factor;
    }
  }

  template <bool Centered>
  static void normalize(const NormRows& call, int64_t begin, int64_t end) {
    const auto kernel =
        call.scale ? (call.bias ? normalize_with<Centered, true, true> : normalize_with<Centered, true, false>)
                   : (call.bias ? normalize_with<Centered, false, true> : normalize_with<Centered, false, false>);
    kernel(call, begin, end);
  }

  static constexpr LayerNormKernels table() {
    return {Arch::isa, sum, add, sum_of_squares, apply, normalize<true>, normalize<false>};
  }
};

}  // namespace tenon::kernels
