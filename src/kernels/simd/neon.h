#pragma once

#include <arm_neon.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Neon {
  static constexpr Isa isa = Isa::neon;
  static constexpr int width = 4;
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t I __attribute__((vector_size(16)));
  static F fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
};

}  // namespace
}  // namespace tenon::kernels
