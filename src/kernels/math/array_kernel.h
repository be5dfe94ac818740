// Applies the vector functions to arrays; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include "kernels/math/functions.h"
#include "kernels/math/math.h"

namespace tenon::kernels {

template <class Arch>
struct MathArrays {
  using M = MathFunctions<Arch>;
  using S = typename M::S;
  using F = typename M::F;

  template <F (*Function)(F)>
  static void apply(const float* x, float* y, int64_t n) {
    int64_t i = 0;
    // Several at a time, so that their long chains of operations overlap.
    constexpr int at_once = 4;
    for (; i + at_once * S::width <= n; i += at_once * S::width) {
      F values[at_once];
#pragma GCC unroll 4
      for (int j = 0; j < at_once; ++j) values[j] = Function(S::load(x + i + j * S::width));
#pragma GCC unroll 4
      for (int j = 0; j < at_once; ++j) S::store(y + i + j * S::width, values[j]);
    }
    for (; i + S::width <= n; i += S::width) S::store(y + i, Function(S::load(x + i)));
    if (i < n) S::store_part(y + i, Function(S::load_part(x + i, n - i)), n - i);
  }

  static constexpr MathKernels table() {
    return {
        Arch::isa,     apply<M::exp>,  apply<M::expm1>,     apply<M::log>,  apply<M::tanh>,       apply<M::sigmoid>,
        apply<M::erf>, apply<M::gelu>, apply<M::gelu_tanh>, apply<M::silu>, apply<M::hard_swish>, apply<M::softplus>,
        apply<M::sin>, apply<M::cos>,  apply<M::asin>,      apply<M::acos>, apply<M::atan>};
  }
};

}  // namespace tenon::kernels
