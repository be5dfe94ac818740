// Scales and shifts vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <limits>

#include "kernels/channel_affine/channel_affine.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct AffineArrays {
  using S = Simd<Arch>;
  using F = typename S::F;
  static_assert(affine_period % S::width == 0);
  static constexpr int vectors = affine_period / S::width;

  static void run(const float* x, const float* scale, const float* shift, float lo, float hi, float* y, int64_t n) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (lo == -infinity && hi == infinity)
      scale_all<false>(x, scale, shift, lo, hi, y, n);
    else
      scale_all<true>(x, scale, shift, lo, hi, y, n);
  }

  template <bool clamps>
  static void scale_all(const float* x, const float* scale, const float* shift, float lo, float hi, float* y,
                        int64_t n) {
    F factor[vectors], addend[vectors];
    for (int k = 0; k < vectors; ++k) {
      factor[k] = S::load(scale + k * S::width);
      addend[k] = S::load(shift + k * S::width);
    }
    const F lowest = S::set(lo), highest = S::set(hi);
    const auto made = [&](F v, int k) __attribute__((always_inline)) {
      const F result = S::fma(v, factor[k], addend[k]);
      return clamps ? S::clamp(result, lowest, highest) : result;
    };
    int64_t i = 0;
    for (; i + affine_period <= n; i += affine_period) {
      F v[vectors];
      for (int k = 0; k < vectors; ++k) v[k] = made(S::load(x + i + k * S::width), k);
      for (int k = 0; k < vectors; ++k) S::store(y + i + k * S::width, v[k]);
    }
    for (int k = 0; i < n; i += S::width, ++k) {
      const int64_t count = n - i < S::width ? n - i : S::width;
      S::store_part(y + i, made(S::load_part(x + i, count), k), count);
    }
  }

  static constexpr AffineKernels table() { return {Arch::isa, run}; }
};

}  // namespace tenon::kernels
