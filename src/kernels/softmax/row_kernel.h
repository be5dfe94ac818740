// Softmax of one row; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

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
      a = S::max(a, S::load(x + i));
      b = S::max(b, S::load(x + i + width));
      c = S::max(c, S::load(x + i + 2 * width));
      d = S::max(d, S::load(x + i + 3 * width));
    }
    float result = S::highest(S::max(S::max(a, b), S::max(c, d)));
    for (; i < n; ++i) result = x[i] > result ? x[i] : result;
    return result;
  }

  // The sum of exp(x - shift); stores the terms where `y` is not null.
  template <bool Store>
  static float sum_of_exp(const float* x, float shift, float* y, int64_t n) {
    F a = {}, b = {};
    int64_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
      const F e0 = M::exp_nonpositive(S::load(x + i) - shift), e1 = M::exp_nonpositive(S::load(x + i + width) - shift);
      if (Store) S::store(y + i, e0), S::store(y + i + width, e1);
      a += e0;
      b += e1;
    }
    float total = S::sum(a + b);
    for (; i < n; i += width) {
      const int64_t count = n - i < width ? n - i : width;
      const F e = M::exp_nonpositive(S::load_part(x + i, count) - shift);
      if (Store) S::store_part(y + i, e, count);
      for (int64_t j = 0; j < count; ++j) total += e[j];
    }
    return total;
  }

  static void softmax(const float* x, float* y, int64_t n) {
    const float scale = 1.0f / sum_of_exp<true>(x, highest(x, n), y, n);
    int64_t i = 0;
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

  static constexpr SoftmaxKernels table() { return {Arch::isa, softmax, log_softmax}; }
};

}  // namespace tenon::kernels
