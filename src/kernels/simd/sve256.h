#pragma once

#include <arm_sve.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

// For processes whose SVE registers have 256 bits.
struct Sve256 {
  static constexpr Isa isa = Isa::sve256;
  static constexpr int width = 8;
  static constexpr VectorsAtOnce at_once{4, 6, 3, 4};
  // Not gnu::vector_size, which calls would pass in memory; of integers, because comparisons give those.
  using F = svfloat32_t __attribute__((arm_sve_vector_bits(256)));
  using I [[gnu::vector_size(32)]] = int32_t;
  static F fma(F a, F b, F c) { return svmla_x(all(), c, a, b); }
  using D = svfloat64_t __attribute__((arm_sve_vector_bits(256)));
  using L [[gnu::vector_size(32)]] = int64_t;
  using H [[gnu::vector_size(16)]] = float;                         // as many as D has
  static F fnma(F a, F b, F c) { return svmls_x(all(), c, a, b); }  // c - a * b
  static D fma(D a, D b, D c) { return svmla_x(all(), c, a, b); }
  // Not once for several vectors, nor in another order: see Simd::addend.
  static F load_anew(const float* lanes) {
    F v;
    asm volatile("ld1w %0.s, %2/z, %1" : "=w"(v) : "m"(*reinterpret_cast<const F*>(lanes)), "Upl"(all()));
    return v;
  }
  // Two units compute: a copy of a register costs more than operations in the order in which they are written.
  static constexpr bool always_loads_addends = true;
  // What computes v comes before what uses it, and volatile code between them stays there.
  static void in_order(F& v) { asm volatile("" : "+w"(v)); }
  // Stores follow each other as they are written.
  static void store_in_order(float* p, F v) {
    asm volatile("st1w %1.s, %2, %0" : "=m"(*reinterpret_cast<F*>(p)) : "w"(v), "Upl"(all()) : "memory");
  }
  static F load_part(const float* p, int64_t count) { return svld1(first(count), p); }
  static void store_part(float* p, F v, int64_t count) { svst1(first(count), p, v); }
  static F abs(F x) { return (F)((I)x & all_but_sign()); }
  static F copy_sign(F magnitude, F sign) {
    const I mask = all_but_sign();
    return (F)(((I)magnitude & mask) | ((I)sign & ~mask));
  }
  static F sqrt(F x) { return svsqrt_x(all(), x); }
  static F reciprocal_estimate(F x) { return svrecpe(x); }
  // x * 2^n for a whole n, rounded once.
  static F scale(F x, F n) { return svscale_x(all(), x, svcvt_s32_x(all(), n)); }
  // 2^(n / 64 - 127), where n are the last 14 bits of v; 0 if they are 0.
  static F power_of_last_bits(F v) { return svexpa(svreinterpret_u32(v)); }
  // NaN where either is NaN.
  static F max(F a, F b) { return svmax_x(all(), a, b); }
  static F min(F a, F b) { return svmin_x(all(), a, b); }
  static F choose(I mask, F a, F b) { return mask ? a : b; }
  static bool any(I v) { return svptest_any(all(), svcmpne(all(), svint32_t(v), 0)); }
  // In the order of Simd::sum.
  static float sum(F v) {
    const F fours = svext(v, v, 4), by_four = v + fours;
    const F twos = svext(by_four, by_four, 2), by_two = by_four + twos;
    return by_two[0] + by_two[1];
  }
  static float highest(F v) { return svmaxv(all(), v); }
  // Zero where it is not above that; NaN stays NaN.
  static F relu(F x) { return svmax_x(all(), x, 0.0f); }
  static F load_halves(const uint16_t* p) { return svcvt_f32_x(all(), svreinterpret_f16(svld1uh_u32(all(), p))); }
  static void store_halves(uint16_t* p, F v) { svst1h(all(), p, svreinterpret_u32(svcvt_f16_x(all(), v))); }
  static D widen(const float* p) {
    const svuint32_t lanes = svreinterpret_u32(svld1(svptrue_pat_b32(SV_VL4), p));
    return svcvt_f64_x(svptrue_b64(), svreinterpret_f32(svunpklo(lanes)));
  }

 private:
  static svbool_t all() { return svptrue_b32(); }
  // Not known to the compiler, which would copy a vector before it takes bits from it by a number in the instruction.
  static I all_but_sign() {
    I mask;
    asm("mov %0.s, #0x7fffffff" : "=w"(mask));
    return mask;
  }
  static svbool_t first(int64_t count) { return svwhilelt_b32(int64_t{0}, count); }
};

}  // namespace
}  // namespace tenon::kernels
