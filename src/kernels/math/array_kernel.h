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

  // Several at a time, so that their long chains of operations overlap, where there are registers for them.
  static constexpr int at_once = Arch::isa == Isa::neon ? 4 : 2;

  template <F (*Function)(F)>
  static void apply(const float* x, float* y, int64_t n) {
    int64_t i = 0;
    for (; i + at_once * S::width <= n; i += at_once * S::width) {
      F v[at_once];
      for (int k = 0; k < at_once; ++k) v[k] = Function(S::load(x + i + k * S::width));
      for (int k = 0; k < at_once; ++k) S::store(y + i + k * S::width, v[k]);
    }
    for (; i + S::width <= n; i += S::width) S::store(y + i, Function(S::load(x + i)));
    if (i < n) S::store_part(y + i, Function(S::load_part(x + i, n - i)), n - i);
  }

  static constexpr MathKernels table() {
    return {Arch::isa,          apply<M::exp>,       apply<M::expm1>,   apply<M::expm1_nonpositive>,
            apply<M::log>,      apply<M::tanh>,      apply<M::sigmoid>, apply<M::erf>,
            apply<M::gelu>,     apply<M::gelu_tanh>, apply<M::silu>,    apply<M::hard_swish>,
            apply<M::softplus>, apply<M::sin>,       apply<M::cos>,     apply<M::asin>,
            apply<M::acos>,     apply<M::atan>};
  }
};

}  // namespace tenon::kernels
