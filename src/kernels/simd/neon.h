#pragma once

#include <arm_neon.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Neon {
  static constexpr Isa isa = Isa::neon;
  static constexpr int width = 4;
  using F [[gnu::vector_size(16)]] = float;
  using I [[gnu::vector_size(16)]] = int32_t;
  static F fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
  static F sqrt(F x) { return (F)vsqrtq_f32((float32x4_t)x); }
  static F clamp(F v, F lo, F hi) { return (F)vminq_f32(vmaxq_f32((float32x4_t)v, (float32x4_t)lo), (float32x4_t)hi); }
};

}  // namespace
}  // namespace tenon::kernels
