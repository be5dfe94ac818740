#include <arm_neon.h>

#include "kernels/half/array_kernel.h"

namespace tenon::kernels {
namespace {

struct Neon {
  static constexpr Isa isa = Isa::neon;
  static constexpr int width = 8;
  static void to_half(const float* x, uint16_t* y) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(x));
    vst1q_u16(y, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(x + 4))));
  }
  static void to_float(const uint16_t* x, float* y) {
    vst1q_f32(y, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x))));
    vst1q_f32(y + 4, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + 4))));
  }
};

}  // namespace

constexpr HalfKernels half_kernels_neon = HalfArrays<Neon>::table();

}  // namespace tenon::kernels
