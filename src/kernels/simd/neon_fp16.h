// Vectors of half precision, for files that are compiled with its arithmetic.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace tenon::kernels {
namespace {

// What Simd has for floats, for numbers that are stored as uint16_t.
struct NeonHalf {
  static constexpr int width = 8;
  using F [[gnu::vector_size(16)]] = __fp16;
  using Floats [[gnu::vector_size(16)]] = float;

  static F load(const uint16_t* p) {
    F v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(uint16_t* p, F v) { std::memcpy(p, &v, sizeof v); }
  static F set(float x) { return (F)vdupq_n_f16(static_cast<__fp16>(x)); }
  static F fma(F a, F b, F c) { return (F)vfmaq_f16((float16x8_t)c, (float16x8_t)a, (float16x8_t)b); }
  // For bounds that are not NaN; NaN stays NaN.
  static F at_least(F bound, F v) { return (F)vmaxq_f16((float16x8_t)bound, (float16x8_t)v); }
  static F at_most(F bound, F v) { return (F)vminq_f16((float16x8_t)bound, (float16x8_t)v); }
  static F clamp(F v, F lo, F hi) { return at_most(hi, at_least(lo, v)); }

  // The two halves of a vector as floats, and back.
  static Floats low(F v) { return (Floats)vcvt_f32_f16(vget_low_f16((float16x8_t)v)); }
  static Floats high(F v) { return (Floats)vcvt_high_f32_f16((float16x8_t)v); }
  static F narrow(Floats low, Floats high) {
    return (F)vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)low), (float32x4_t)high);
  }
  static Floats load_floats(const float* p) { return (Floats)vld1q_f32(p); }
  static void store_floats(float* p, Floats v) { vst1q_f32(p, (float32x4_t)v); }
};

}  // namespace
}  // namespace tenon::kernels
