// Applies the vector functions to arrays; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <cmath>
#include <cstring>

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

  static F load(const float* p) { return S::load(p); }
  static F load(const uint16_t* p) { return Arch::load_halves(p); }
  static void store(float* p, F v) { S::store(p, v); }
  static void store(uint16_t* p, F v) { Arch::store_halves(p, v); }

  // T is float, or uint16_t for half precision.
  template <F (*Function)(F), class T = float>
  static void apply(const T* x, T* y, int64_t n) {
    int64_t i = 0;
    for (; i + at_once * S::width <= n; i += at_once * S::width) {
      F v[at_once];
      for (int k = 0; k < at_once; ++k) v[k] = Function(load(x + i + k * S::width));
      for (int k = 0; k < at_once; ++k) store(y + i + k * S::width, v[k]);
    }
    for (; i + S::width <= n; i += S::width) store(y + i, Function(load(x + i)));
    if (i == n) return;
    T rest[S::width] = {};
    std::memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(T));
    store(rest, Function(load(rest)));
    std::memcpy(y + i, rest, static_cast<size_t>(n - i) * sizeof(T));
  }

  // The same for functions of several vectors.
  template <void (*Function)(F (&)[at_once]), void (*One)(F (&)[1])>
  static void apply_together(const float* x, float* y, int64_t n) {
    int64_t i = 0;
    for (; i + at_once * S::width <= n; i += at_once * S::width) {
      F v[at_once];
      for (int k = 0; k < at_once; ++k) v[k] = S::load(x + i + k * S::width);
      Function(v);
      for (int k = 0; k < at_once; ++k) S::store(y + i + k * S::width, v[k]);
    }
    for (; i + S::width <= n; i += S::width) {
      F v[] = {S::load(x + i)};
      One(v);
      S::store(y + i, v[0]);
    }
    if (i == n) return;
    F v[] = {S::load_part(x + i, n - i)};
    One(v);
    S::store_part(y + i, v[0], n - i);
  }

  // The same for functions that `Function` computes of small angles only, and `Exact` of all.
  template <F (*Function)(F), float (*Exact)(float)>
  static void apply_to_angles(const float* x, float* y, int64_t n) {
    constexpr int64_t block = 256;
    float angles[block];
    for (int64_t begin = 0; begin < n; begin += block, x += block, y += block) {
      const int64_t size = n - begin < block ? n - begin : block;
      if (are_small(x, size)) {
        apply<Function>(x, y, size);
        continue;
      }
      std::memcpy(angles, x, static_cast<size_t>(size) * sizeof(float));
      for (int64_t i = 0; i < size; ++i) {
        if (std::fabs(angles[i]) <= M::largest_reduced_angle)
          apply<Function>(angles + i, y + i, 1);
        else
          y[i] = Exact(angles[i]);
      }
    }
  }

  static bool are_small(const float* x, int64_t n) {
    typename S::I beyond = {};
    int64_t i = 0;
    for (; i + S::width <= n; i += S::width) beyond |= ~(S::abs(S::load(x + i)) <= M::largest_reduced_angle);
    if (i < n) beyond |= ~(S::abs(S::load_part(x + i, n - i)) <= M::largest_reduced_angle);
    return !S::any(beyond);
  }

  static constexpr MathKernels table() {
    return {Arch::isa,
            apply<M::exp>,
            apply<M::expm1>,
            apply<M::expm1_nonpositive>,
            apply<M::log>,
            apply<M::tanh>,
            apply<M::sigmoid>,
            apply<M::erf>,
            apply_together<M::template gelu<at_once>, M::template gelu<1>>,
            apply<M::gelu_tanh>,
            apply<M::silu>,
            apply<M::hard_swish>,
            apply<M::softplus>,
            apply_to_angles<M::sin, M::exact_sin>,
            apply_to_angles<M::cos, M::exact_cos>,
            apply<M::asin>,
            apply<M::acos>,
            apply<M::atan>,
            apply<M::erf_for_half, uint16_t>,
            apply<M::gelu_for_half, uint16_t>};
  }
};

}  // namespace tenon::kernels
