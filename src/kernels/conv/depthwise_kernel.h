// The depthwise inner loop, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include "kernels/conv/depthwise.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct DepthwiseKernel {
  using S = Simd<Arch>;
  using F = typename S::F;
  static constexpr int unroll = 4;

  static F finish(F v, const DepthwiseRow& r) { return S::min(S::set(r.hi), S::max(S::set(r.lo), v)); }

  // Taps is the number of taps when the compiler knows it, else 0.
  template <int Taps>
  static void row(const DepthwiseRow& r, float* out, int64_t n) {
    const int64_t taps = Taps ? Taps : r.taps;
    int64_t j = 0;
    for (; j + unroll * S::width <= n; j += unroll * S::width) {
      F acc[unroll];
#pragma GCC unroll 4
      for (int u = 0; u < unroll; ++u) acc[u] = S::set(r.bias);
#pragma GCC unroll 9
      for (int64_t t = 0; t < taps; ++t) {
        const float* from = r.from + r.offsets[t] + j;
        const F weight = S::set(r.weights[t]);
#pragma GCC unroll 4
        for (int u = 0; u < unroll; ++u) acc[u] = S::fma(weight, S::load(from + u * S::width), acc[u]);
      }
#pragma GCC unroll 4
      for (int u = 0; u < unroll; ++u) S::store(out + j + u * S::width, finish(acc[u], r));
    }
    for (; j < n; j += S::width) {
      F acc = S::set(r.bias);
      for (int64_t t = 0; t < taps; ++t) {
        acc = S::fma(S::set(r.weights[t]), S::load(r.from + r.offsets[t] + j), acc);
      }
      if (n - j >= S::width) {
        S::store(out + j, finish(acc, r));
      } else {
        S::store_part(out + j, finish(acc, r), n - j);
      }
    }
  }

  static void any_row(const DepthwiseRow& r, float* out, int64_t n) {
    switch (r.taps) {
      case 9: return row<9>(r, out, n);
      case 25: return row<25>(r, out, n);
      default: return row<0>(r, out, n);
    }
  }

  static constexpr DepthwiseKernels table() { return {Arch::isa, any_row}; }
};

}  // namespace tenon::kernels
