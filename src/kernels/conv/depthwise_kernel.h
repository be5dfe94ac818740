// The depthwise inner loop, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include "kernels/conv/depthwise.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct DepthwiseKernel {
  using S = Simd<Arch>;
  using F = typename S::F;

  // The taps of a row. Taps is their number when the compiler knows it, else 0; few keep their weights in registers.
  template <int Taps>
  struct Row {
    static constexpr bool in_registers = Taps > 0 && Taps <= 9;
    static constexpr int kept = in_registers ? Taps : 1;

    explicit Row(const DepthwiseRows& row) : r(row), bias(S::set(row.bias)), lo(S::set(row.lo)), hi(S::set(row.hi)) {
      for (int t = 0; t < kept; ++t) {
        weights[t] = S::set(r.weights[t]);
        rows[t] = r.from + r.offsets[t];
      }
    }

    // Vectors [0, Count) of the outputs from j on.
    template <int Count>
    void compute(int64_t j, F (&acc)[Count]) const {
#pragma GCC unroll 4
      for (int u = 0; u < Count; ++u) acc[u] = bias;
#pragma GCC unroll 9
      for (int64_t t = 0; t < (Taps ? Taps : r.taps); ++t) {
        const float* from = (in_registers ? rows[in_registers ? t : 0] : r.from + r.offsets[t]) + j;
        const F weight = in_registers ? weights[in_registers ? t : 0] : S::set(r.weights[t]);
#pragma GCC unroll 4
        for (int u = 0; u < Count; ++u) acc[u] = S::fma(weight, S::load(from + u * S::width), acc[u]);
      }
#pragma GCC unroll 4
      for (int u = 0; u < Count; ++u) acc[u] = S::clamp(acc[u], lo, hi);
    }

    template <int Count>
    void write(int64_t j, float* out) const {
      F acc[Count];
      compute(j, acc);
#pragma GCC unroll 4
      for (int u = 0; u < Count; ++u) S::store(out + j + u * S::width, acc[u]);
    }

    void advance() {
      r.from += r.step;
      for (int t = 0; t < kept; ++t) rows[t] += r.step;
    }

    DepthwiseRows r;
    F bias, lo, hi;
    F weights[kept];
    const float* rows[kept];
  };

  template <int Taps>
  static void rows(const DepthwiseRows& r, float* out, int64_t n) {
    Row<Taps> taps(r);
    for (int64_t i = 0; i < r.count; ++i, out += n, taps.advance()) row(taps, out, n);
  }

  template <int Taps>
  static void row(const Row<Taps>& taps, float* out, int64_t n) {
    if (n < S::width) {
      F acc[1];
      taps.compute(0, acc);
      return S::store_part(out, acc[0], n);
    }
    int64_t j = 0;
    for (; j + 4 * S::width <= n; j += 4 * S::width) taps.template write<4>(j, out);
    if (j + 2 * S::width <= n) taps.template write<2>(j, out), j += 2 * S::width;
    if (j + S::width <= n) taps.template write<1>(j, out), j += S::width;
    // The last vector overlaps the one before it.
    if (j < n) taps.template write<1>(n - S::width, out);
  }

  static void any_rows(const DepthwiseRows& r, float* out, int64_t n) {
    switch (r.taps) {
      case 9:
        return rows<9>(r, out, n);
      case 25:
        return rows<25>(r, out, n);
      default:
        return rows<0>(r, out, n);
    }
  }

  static constexpr DepthwiseKernels table() { return {Arch::isa, any_rows}; }
};

}  // namespace tenon::kernels
