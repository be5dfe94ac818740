// The passes over one row; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>

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
    constexpr int chains = Arch::isa == Isa::neon ? 8 : 4;
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

  struct Sums {
    float values, squares;
  };

  // Both sums of a row in one pass, which brings n floats of `next` near.
  [[gnu::always_inline]] static Sums sums_of(const float* x, int64_t n, const float* next) {
    constexpr int chains = Arch::isa == Isa::neon ? 8 : 4;
    F values[chains] = {}, squares[chains] = {};
    int64_t i = 0;
    for (; i + chains * width <= n; i += chains * width) {
      fetch(next + i, chains * width);
#pragma GCC unroll 8
      for (int u = 0; u < chains; ++u) {
        const F v = S::load(x + i + u * width);
        values[u] += v;
        squares[u] = S::fma(v, v, squares[u]);
      }
    }
    for (; i + width <= n; i += width) {
      const F v = S::load(x + i);
      values[0] += v;
      squares[0] = S::fma(v, v, squares[0]);
    }
#pragma GCC unroll 8
    for (int u = 1; u < chains; ++u) values[0] += values[u], squares[0] += squares[u];
    Sums total{S::sum(values[0]), S::sum(squares[0])};
    for (; i < n; ++i) total.values += x[i], total.squares += x[i] * x[i];
    return total;
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

  template <bool Scale, bool Bias, bool Fetch = true>
  [[gnu::always_inline]] static void apply_with(const float* x, float* y, int64_t n, float shift, float factor,
                                                const float* scale, const float* bias) {
    const auto normalized = [=](F v, const auto& load, const auto& load_addend) {
      v = (v - shift) * factor;
      if (Scale && Bias) return S::fma(v, load(scale), load_addend(bias));
      if (Scale) v *= load(scale);
      if (Bias) v += load(bias);
      return v;
    };
    int64_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      F v[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        const auto load = [at = i + u * width](const float* p) { return S::load(p + at); };
        v[u] = normalized(load(x), load, [at = i + u * width](const float* p) { return S::addend(p + at); });
      }
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) S::store(y + i + u * width, v[u]);
      if (Fetch) fetch(x + n + i, 4 * width);
    }
    for (; i + width <= n; i += width) {
      const auto load = [i](const float* p) { return S::load(p + i); };
      S::store(y + i, normalized(load(x), load, load));
    }
    if (i == n) return;
    const auto load = [i, n](const float* p) { return S::load_part(p + i, n - i); };
    S::store_part(y + i, normalized(load(x), load, load), n - i);
  }

  template <bool Scale, bool Bias>
  static void apply_to_row(const float* x, float* y, int64_t n, float shift, float factor, const float* scale,
                           const float* bias) {
    apply_with<Scale, Bias>(x, y, n, shift, factor, scale, bias);
  }

  static void apply(const float* x, float* y, int64_t n, float shift, float factor, const float* scale,
                    const float* bias) {
    const auto kernel = scale ? (bias ? apply_to_row<true, true> : apply_to_row<true, false>)
                              : (bias ? apply_to_row<false, true> : apply_to_row<false, false>);
    kernel(x, y, n, shift, factor, scale, bias);
  }

  // All in one, without calls: registers that are stored between rows would keep the core from writing whole lines
  // without reading them first.
  template <bool Centered, bool Scale, bool Bias>
  static void normalize_with(const NormRows& call, int64_t begin, int64_t end) {
    const auto [n, scale, bias, epsilon] = std::tuple(call.n, call.scale, call.bias, call.epsilon);
    const auto count = static_cast<float>(n);
    const float* x = call.x + begin * n;
    float* y = call.y + begin * n;
    for (int64_t i = begin; i < end; ++i, x += n, y += n) {
      float mean = 0, squares;
      if constexpr (Centered) {
        // What comes next is read from memory while the sums are made, this row written afterwards.
        const Sums sums = sums_of(x, n, x + std::max<int64_t>(n, floats_ahead));
        mean = sums.values / count, squares = sums.squares - sums.values * mean;
        // Far from zero little is left of the difference: then squares are those of values from which the mean is
        // subtracted.
        if (!(sums.values * mean <= 4 * squares)) squares = squares_around(mean, x, n);
      } else {
        squares = squares_around(0, x, n);
      }
      const float factor = 1.0f / std::sqrt(squares / count + epsilon);
      apply_with<Scale, Bias, !Centered>(x, y, n, mean, factor, scale, bias);
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
