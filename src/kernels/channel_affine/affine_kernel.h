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

  static void run(const AffinePlanes& call, int64_t begin, int64_t end) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (call.lo == -infinity && call.hi == infinity)
      scale_planes<false>(call, begin, end);
    else
      scale_planes<true>(call, begin, end);
  }

  // Without what would put registers onto the stack: a core that stores nothing else writes whole lines without reading
  // them first, from one plane to the next.
  template <bool clamps>
  static void scale_planes(const AffinePlanes& call, int64_t begin, int64_t end) {
    const auto [first, scales, shifts, lo, hi, to, size, channels] = call;
    const float* x = first + begin * size;
    float* y = to + begin * size;
    for (int64_t plane = begin, own = begin % channels; plane < end; ++plane, x += size, y += size) {
      scale_all<clamps>(x, scales + own * affine_period, shifts + own * affine_period, lo, hi, y, size);
      own = own + 1 == channels ? 0 : own + 1;
    }
  }

  template <bool clamps>
  [[gnu::always_inline]] static F made(F v, F factor, F addend, float lo, float hi) {
    const F result = S::fma(v, factor, addend);
    return clamps ? S::clamp(result, S::set(lo), S::set(hi)) : result;
  }

  template <bool clamps>
  [[gnu::always_inline]] static void scale_all(const float* x, const float* scale, const float* shift, float lo,
                                               float hi, float* y, int64_t n) {
    F factor[vectors], addend[vectors];
    for (int k = 0; k < vectors; ++k) {
      factor[k] = S::load(scale + k * S::width);
      addend[k] = S::load(shift + k * S::width);
    }
    for (; n >= affine_period; n -= affine_period, x += affine_period, y += affine_period) {
      __builtin_prefetch(x + read_ahead);
      F v[vectors];
      for (int k = 0; k < vectors; ++k) v[k] = made<clamps>(S::load(x + k * S::width), factor[k], addend[k], lo, hi);
      store(y, v);
    }
    if (n > 0) scale_rest<clamps>(x, scale, shift, lo, hi, y, n);
  }

  template <bool clamps>
  [[gnu::noinline]] static void scale_rest(const float* x, const float* scale, const float* shift, float lo, float hi,
                                           float* y, int64_t n) {
    for (int64_t i = 0; i < n; i += S::width) {
      const int64_t count = n - i < S::width ? n - i : S::width;
      const F v = made<clamps>(S::load_part(x + i, count), S::load(scale + i), S::load(shift + i), lo, hi);
      S::store_part(y + i, v, count);
    }
  }

  // A line of the cache in order, where vectors are that short.
  static void store(float* y, const F (&v)[vectors]) {
    if constexpr (sizeof(F) == sizeof(Bytes16))
      store_line(y, (Bytes16)v[0], (Bytes16)v[1], (Bytes16)v[2], (Bytes16)v[3]);
    else
      for (int k = 0; k < vectors; ++k) S::store(y + k * S::width, v[k]);
  }

  static constexpr AffineKernels table() { return {Arch::isa, run}; }
};

}  // namespace tenon::kernels
