// The loops, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include "kernels/peak/peak.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// As many sums at once as registers allow: more than a core's multiply-add units times their latency.
template <class Arch, int Sums>
struct PeakLoops {
  using S = Simd<Arch>;
  using F = typename S::F;

  static float multiply_add(int64_t steps, const float* factors) {
    F sums[Sums];
#pragma GCC unroll 24
    for (int i = 0; i < Sums; ++i) sums[i] = S::set(static_cast<float>(i));
    const F a = S::load(factors), b = S::load(factors + S::width);
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 24
      for (int i = 0; i < Sums; ++i) sums[i] = S::fma(a, b, sums[i]);
    }
    return total(sums);
  }

  static float read(const float* data, int64_t n) {
    constexpr int at_once = 8;
    F sums[at_once] = {};
    for (int64_t i = 0; i < n; i += at_once * S::width) {
#pragma GCC unroll 8
      for (int j = 0; j < at_once; ++j) sums[j] += S::load(data + i + j * S::width);
    }
    return total(sums);
  }

  static constexpr PeakKernels table() { return {Arch::isa, 2 * Sums * S::width, &multiply_add, &read}; }

 private:
  template <int N>
  static float total(const F (&sums)[N]) {
    F sum = sums[0];
#pragma GCC unroll 24
    for (int i = 1; i < N; ++i) sum += sums[i];
    return S::sum(sum);
  }
};

}  // namespace tenon::kernels
