// Hyperbolic functions and their inverses, written once for all instruction sets.
#pragma once

#include "kernels/math/functions.h"

namespace tenon::kernels {

template <class Arch>
struct HyperbolicFunctions : MathFunctions<Arch> {
  using M = MathFunctions<Arch>;
  using typename M::F;
  using typename M::I;
  using typename M::S;

  // exp(x) / 2 for x of at least 0: infinite only where that is.
  static F half_exp(F x) {
    F n;
    const F e = M::expm1_reduced(M::reduce_exponent(S::at_most(S::set(91.0f), x), n)) + 1.0f;
    return M::times_power_of_two(e, n - 1.0f);
  }

  static F cosh(F x) {
    const F half = half_exp(S::abs(x));
    return half + 0.25f / half;
  }

  static F sinh(F x) {
    static constexpr auto coefficients = M::in_all_lanes({0.166666667f, 0.00833333333f, 0.000198412698f, 2.7805e-6f});
    const F square = x * x, small = S::fma(x * square, M::polynomial(square, coefficients), x);
    const F half = half_exp(S::abs(x)), large = M::copy_sign(half - 0.25f / half, x);
    return M::choose(square < 1.0f, small, large);
  }

  // From here on the square of x is all of 1 + x * x.
  static constexpr float large = 8192;

  // log(1 + x), or log(2 * other) where that is `large`; for x of at least 0.
  static F log1p_or_log2(F x, F other) {
    const I is_large = other > large;
    const F sum = x + 1.0f, lost = (x - (sum - 1.0f)) / sum;
    return M::log_of_normal(M::choose(is_large, other, sum), I{}, M::choose(is_large, S::set(0.693147181f), lost));
  }

  static F asinh(F x) {
    const F a = S::abs(x), square = a * a;
    const F result = log1p_or_log2(a + square / (S::sqrt(square + 1.0f) + 1.0f), a);
    return M::copy_sign(M::choose(a < M::infinity, result, a), x);
  }

  // NaN below 1.
  static F acosh(F x) {
    const F above = x - 1.0f, result = log1p_or_log2(above + S::sqrt(above * (x + 1.0f)), x);
    const F finite = M::choose(x < M::infinity, result, x);
    return M::choose(x >= 1.0f, finite, S::set(NAN));
  }

  // NaN beyond 1.
  static F atanh(F x) {
    const F a = S::abs(x), twice = a + a;
    const F result = 0.5f * log1p_or_log2(twice / (1.0f - a), F{});
    const F at_end = M::choose(a == 1.0f, S::set(M::infinity), S::set(NAN));
    return M::copy_sign(M::choose(a < 1.0f, result, at_end), x);
  }
};

}  // namespace tenon::kernels
