// Scales and shifts vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <limits>

#include "base/whole_lines.h"
#include "kernels/channel_affine/channel_affine.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct AffineArrays {
  using S = Simd<Arch>;
  using F = typename S::F;
  static_assert(affine_period % S::width == 0);
  static constexpr int vectors = affine_period / S::width;
  static constexpr int64_t read_ahead = 512;  // elements, so that memory is read at its speed

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
    F factor[vectors];
    for (int k = 0; k < vectors; ++k) factor[k] = S::load(scale + k * S::width);
    const F lowest = S::set(lo), highest = S::set(hi);
    const auto made = [&](F v, int k) __attribute__((always_inline)) {
      const F result = S::fma(v, factor[k], S::addend(shift + k * S::width));
      return clamps ? S::clamp(result, lowest, highest) : result;
    };
    int64_t i = 0;
    for (; i + affine_period <= n; i += affine_period) {
      __builtin_prefetch(x + i + read_ahead);
      F v[vectors];
      for (int k = 0; k < vectors; ++k) v[k] = made(S::load(x + i + k * S::width), k);
      for (int k = 0; k < vectors; ++k) S::store(y + i + k * S::width, v[k]);
    }
    for (int k = 0; i < n; i += S::width, ++k) {
      const int64_t count = n - i < S::width ? n - i : S::width;
      S::store_part(y + i, made(S::load_part(x + i, count), k), count);
    }
  }

  static void run_row(const float* x, float scale, float shift, float* y, int64_t n) {
    constexpr int64_t line = 64 / sizeof(float), at_once = 4 * S::width;
    alignas(sizeof(F)) float addend[S::width];
    S::store(addend, S::set(shift));
    const F factor = S::set(scale);
    const auto made = [&](F v) __attribute__((always_inline)) { return S::fma(v, factor, S::addend(addend)); };
    int64_t i = 0;
    for (; i + at_once <= n; i += at_once) {
      for (int64_t k = 0; k < at_once; k += line) __builtin_prefetch(x + i + read_ahead + k);
      F v[4];
      for (int k = 0; k < 4; ++k) v[k] = made(S::load(x + i + k * S::width));
      if constexpr (sizeof(F) == sizeof(Bytes16))
        store_line(y + i, (Bytes16)v[0], (Bytes16)v[1], (Bytes16)v[2], (Bytes16)v[3]);
      else
        for (int k = 0; k < 4; ++k) S::store(y + i + k * S::width, v[k]);
    }
    for (; i < n; i += S::width) {
      const int64_t count = n - i < S::width ? n - i : S::width;
      S::store_part(y + i, made(S::load_part(x + i, count)), count);
    }
  }

  static constexpr AffineKernels table() { return {Arch::isa, run, run_row}; }
};

}  // namespace tenon::kernels
