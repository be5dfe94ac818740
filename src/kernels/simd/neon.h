#pragma once

#include <arm_neon.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Neon {
  static constexpr Isa isa = Isa::neon;
  static constexpr int width = 4;
  static constexpr VectorsAtOnce at_once{4, 6, 6, 8};
  using F [[gnu::vector_size(16)]] = float;
  using I [[gnu::vector_size(16)]] = int32_t;
  static F fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
  using D [[gnu::vector_size(16)]] = double;
  using L [[gnu::vector_size(16)]] = int64_t;
  using H [[gnu::vector_size(8)]] = float;  // as many as D has
  static F fnma(F a, F b, F c) { return (F)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }  // c - a * b
  static D fma(D a, D b, D c) { return (D)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
  // Not once for several vectors, nor in another order: see Simd::addend.
  static F load_anew(const float* lanes) {
    F v;
    asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const float(*)[width]>(lanes)));
    return v;
  }
  // What computes v comes before what uses it, and volatile code between them stays there.
  static void in_order(F& v) { asm volatile("" : "+w"(v)); }
  static F abs(F x) { return (F)vabsq_f32((float32x4_t)x); }
  static F sqrt(F x) { return (F)vsqrtq_f32((float32x4_t)x); }
  static F reciprocal_estimate(F x) { return (F)vrecpeq_f32((float32x4_t)x); }
  // NaN where either is NaN.
  static F max(F a, F b) { return (F)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
  static F min(F a, F b) { return (F)vminq_f32((float32x4_t)a, (float32x4_t)b); }
  // In the order of Simd::sum.
  static float sum(F v) {
    const float32x2_t halves = vadd_f32(vget_low_f32((float32x4_t)v), vget_high_f32((float32x4_t)v));
    return vget_lane_f32(vpadd_f32(halves, halves), 0);
  }
  static float highest(F v) { return vmaxvq_f32((float32x4_t)v); }
  // Zero where it is not above that; NaN stays NaN.
  static F relu(F x) { return (F)vmaxq_f32((float32x4_t)x, vdupq_n_f32(0)); }
  static F copy_sign(F magnitude, F sign) {
    return (F)vbslq_f32(vdupq_n_u32(0x80000000), (float32x4_t)sign, (float32x4_t)magnitude);
  }
  static F load_halves(const uint16_t* p) { return (F)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
  static void store_halves(uint16_t* p, F v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v))); }
};

}  // namespace
}  // namespace tenon::kernels
