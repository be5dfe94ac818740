// Applies the vector functions to arrays; a file per instruction set instantiates it.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstring>

#include "kernels/math/double_functions.h"
#include "kernels/math/functions.h"
#include "kernels/math/hyperbolic_functions.h"
#include "kernels/math/math.h"

namespace tenon::kernels {

// Of doubles, a block at a time: vectors, unless one of its elements is too large for them.
template <class Arch>
struct DoubleArrays {
  using M = DoubleFunctions<Arch>;
  using D = typename M::D;
  using L = typename M::L;
  static constexpr int64_t block = 256;

  static D load(const double* p) {
    D v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  template <class Function>
  static void apply(const double* x, double* y, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += block)
      apply_to_block<Function>(x + begin, y + begin, n - begin < block ? n - begin : block);
  }

  template <class Function>
  static void apply_to_block(const double* x, double* y, int64_t n) {
    int64_t i = 0;
    if (are_within(Function::limit, x, n)) {
      vectors<Function, 4>(x, y, i, n);
      vectors<Function, 1>(x, y, i, n);
    }
    for (; i < n; ++i) y[i] = one<Function>(x[i]);
  }

  // As many groups of `count` vectors as there are from element i on.
  template <class Function, int count>
  [[gnu::always_inline]] static void vectors(const double* x, double* y, int64_t& i, int64_t n) {
    for (; i + count * M::width <= n; i += count * M::width) {
      D v[count];
      for (int k = 0; k < count; ++k) v[k] = Function::vector(load(x + i + k * M::width));
      for (int k = 0; k < count; ++k) std::memcpy(y + i + k * M::width, &v[k], sizeof v[k]);
    }
  }

  // Whether the elements of all whole vectors are.
  static bool are_within(double limit, const double* x, int64_t n) {
    L within = ~L{};
    for (int64_t i = 0; i + M::width <= n; i += M::width) within &= (D)((L)load(x + i) & INT64_MAX) <= limit;
    for (int lane = 0; lane < M::width; ++lane) {
      if (!within[lane]) return false;
    }
    return true;
  }

  using Floats = typename Arch::H;
  static D widen(const float* p, int64_t step) {
    if (step == 0) return M::set(*p);
    if constexpr (requires { Arch::widen(p); }) return Arch::widen(p);
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, D);
  }

  // Where `mask`, whose lanes are 0 or -1, `a`, else `b`. Conditions would be taken apart lane by lane.
  static D choose(L mask, D a, D b) { return (D)(((L)a & mask) | ((L)b & ~mask)); }

  static void pow(const FloatPowers& p) {
    int64_t i = 0;
    for (; i + M::width <= p.n; i += M::width)
      pow_vector(p.x + i * p.x_step, p.x_step, p.y + i * p.y_step, p.y_step, p.z + i);
    if (i == p.n) return;
    float x[M::width], y[M::width], z[M::width];
    for (int64_t k = 0; k < M::width; ++k) {
      const int64_t at = k < p.n - i ? i + k : i;
      x[k] = p.x[at * p.x_step], y[k] = p.y[at * p.y_step];
    }
    pow_vector(x, 1, y, 1, z);
    std::memcpy(p.z + i, z, static_cast<size_t>(p.n - i) * sizeof(float));
  }

  // What is above 0 to finite powers; the rest by std::pow.
  static void pow_vector(const float* x, int64_t x_step, const float* y, int64_t y_step, float* z) {
    const D base = widen(x, x_step), power = widen(y, y_step);
    const L is_usual = (base > 0.0) & (base <= double{FLT_MAX}) & ((D)((L)power & INT64_MAX) <= double{FLT_MAX});
    // Beyond the limits it is 0 or infinite as a float.
    const D exponent = power * M::log(base), limit = M::set(M::Exp::limit);
    const D bounded = choose(exponent > limit, limit, choose(exponent < -limit, -limit, exponent));
    Floats result = __builtin_convertvector(M::Exp::vector(bounded), Floats);
    int64_t lanes[M::width], all_usual = -1;
    std::memcpy(lanes, &is_usual, sizeof is_usual);
    for (int64_t lane : lanes) all_usual &= lane;
    for (int lane = 0; lane < M::width && all_usual == 0; ++lane)
      if (lanes[lane] == 0) result[lane] = std::pow(x[lane * x_step], y[lane * y_step]);
    std::memcpy(z, &result, sizeof result);
  }

  // The same bits, wherever x is.
  template <class Function>
  static double one(double x) {
    return std::fabs(x) <= Function::limit ? Function::vector(M::set(x))[0] : Function::exact(x);
  }
};

template <class Arch>
struct MathArrays {
  using M = HyperbolicFunctions<Arch>;
  using S = typename M::S;
  using F = typename M::F;

  static constexpr int at_once = Arch::at_once.of_functions;

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

  static void reciprocal(const float* x, float* y, int64_t n) {
    int64_t i = 0;
    if constexpr (requires(F v) { Arch::reciprocal_estimate(v); }) {
      for (; i + reciprocal_block <= n; i += reciprocal_block) reciprocals(x + i, y + i);
    }
    apply<M::reciprocal>(x + i, y + i, n - i);
  }

  static constexpr int64_t reciprocal_block = 256;
  static void reciprocals(const float* x, float* y) {
    constexpr int together = 8;
    float copy[reciprocal_block];
    if (x == y) x = static_cast<float*>(std::memcpy(copy, x, sizeof copy));
    F doubt = {};
    for (int64_t i = 0; i < reciprocal_block; i += together * S::width) {
      F v[together];
      for (int k = 0; k < together; ++k) v[k] = S::load(x + i + k * S::width);
      M::reciprocals(v, doubt);
      for (int k = 0; k < together; ++k) S::store(y + i + k * S::width, v[k]);
    }
    if (S::any(~(S::abs(doubt) < 0x1p64f))) apply<M::reciprocal>(x, y, reciprocal_block);
  }

  // What takes angles that are too large for floats.
  struct Sines {
    template <class A>
    using OfDoubles = typename DoubleFunctions<A>::Sin;
  };
  struct Cosines {
    template <class A>
    using OfDoubles = typename DoubleFunctions<A>::Cos;
  };
  struct Tangents {
    template <class A>
    using OfDoubles = typename DoubleFunctions<A>::Tan;
  };

  // The same for functions of angles: `Function` is for small ones, `Large` for larger ones, `Exact` for all. Each
  // element's result is its own, whatever else is in its block.
  template <F (*Function)(F), class Large, float (*Exact)(float)>
  static void apply_to_angles(const float* x, float* y, int64_t n) {
    constexpr int64_t block = 256;
    float angles[block];
    for (int64_t begin = 0; begin < n; begin += block, x += block, y += block) {
      const int64_t size = n - begin < block ? n - begin : block;
      if (are_within(M::largest_reduced_angle, x, size)) {
        apply<Function>(x, y, size);
        continue;
      }
      std::memcpy(angles, x, static_cast<size_t>(size) * sizeof(float));
      apply<Function>(angles, y, size);
      const bool by_doubles = replace_large<Large>(angles, y, size);
      const float known = by_doubles ? static_cast<float>(largest_by_doubles) : M::largest_reduced_angle;
      const bool all_known = are_within(known, angles, size);
      for (int64_t i = 0; i < size && !all_known; ++i) {
        if (!(std::fabs(angles[i]) <= known)) y[i] = Exact(angles[i]);
      }
    }
  }

  static constexpr double largest_by_doubles = 0x1p40;

  // Computes results again, by doubles, where angles are too large for floats. Says whether there are vectors of them.
  template <class Large>
  static bool replace_large(const float* x, float* y, int64_t n) {
    if constexpr (requires { typename Arch::D; }) {
      using D = typename Arch::D;
      using L = typename Arch::L;
      constexpr int64_t width = sizeof(D) / sizeof(double);
      using Half [[gnu::vector_size(sizeof(D) / 2)]] = float;
      const auto replace = [](const float* from, float* to) {
        Half angles, results;
        std::memcpy(&angles, from, sizeof angles);
        std::memcpy(&results, to, sizeof results);
        const D angle = __builtin_convertvector(angles, D), result = __builtin_convertvector(results, D);
        const L is_large = (D)((L)angle & INT64_MAX) > M::largest_reduced_angle;
        const D larger = Large::template OfDoubles<Arch>::vector(angle);
        results = __builtin_convertvector((D)((is_large & (L)larger) | (~is_large & (L)result)), Half);
        std::memcpy(to, &results, sizeof results);
      };
      int64_t i = 0;
      for (; i + width <= n; i += width) replace(x + i, y + i);
      if (i == n) return true;
      float angles[width] = {}, results[width] = {};
      const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
      std::memcpy(angles, x + i, bytes);
      std::memcpy(results, y + i, bytes);
      replace(angles, results);
      std::memcpy(y + i, results, bytes);
      return true;
    }
    return false;
  }

  static bool are_within(float limit, const float* x, int64_t n) {
    typename S::I beyond = {};
    int64_t i = 0;
    for (; i + S::width <= n; i += S::width) beyond |= ~(S::abs(S::load(x + i)) <= limit);
    if (i < n) beyond |= ~(S::abs(S::load_part(x + i, n - i)) <= limit);
    return !S::any(beyond);
  }

  template <double (*Function)(double)>
  static void each(const double* x, double* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = Function(x[i]);
  }

  static void each_pow(const FloatPowers& p) {
    for (int64_t i = 0; i < p.n; ++i) p.z[i] = std::pow(p.x[i * p.x_step], p.y[i * p.y_step]);
  }

  static constexpr MathKernels::DoubleKernels double_table() {
    if constexpr (requires { typename Arch::D; }) {
      using A = DoubleArrays<Arch>;
      return {A::template apply<typename A::M::Exp>, A::template apply<typename A::M::Sin>,
              A::template apply<typename A::M::Cos>, A::pow};
    } else {
      return {each<std::exp>, each<std::sin>, each<std::cos>, each_pow};
    }
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
            apply_to_angles<M::sin, Sines, M::exact_sin>,
            apply_to_angles<M::cos, Cosines, M::exact_cos>,
            apply_to_angles<M::tan, Tangents, M::exact_tan>,
            apply<M::asin>,
            apply_together<M::template acos<at_once>, M::template acos<1>>,
            apply<M::atan>,
            apply<M::sinh>,
            apply<M::cosh>,
            apply<M::asinh>,
            apply<M::acosh>,
            apply<M::atanh>,
            reciprocal,
            apply<M::erf_for_half, uint16_t>,
            apply<M::gelu_for_half, uint16_t>,
            apply<M::gelu_tanh, uint16_t>,
            apply<M::tanh, uint16_t>,
            apply<M::sigmoid, uint16_t>,
            apply<M::silu, uint16_t>,
            apply<M::hard_swish, uint16_t>,
            double_table()};
  }
};

}  // namespace tenon::kernels
