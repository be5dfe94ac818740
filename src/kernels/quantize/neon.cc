#include "kernels/simd/neon.h"

#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {
namespace {

struct NarrowingNeon : Neon {
  static F lesser_number(F a, F b) { return (F)vminnmq_f32((float32x4_t)a, (float32x4_t)b); }
  static F greater_number(F a, F b) { return (F)vmaxnmq_f32((float32x4_t)a, (float32x4_t)b); }

  static uint16x8_t low_halves(I a, I b) { return vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b); }

  static void narrow(const I (&from)[4], uint8_t* to) {
    const uint16x8_t first = low_halves(from[0], from[1]), second = low_halves(from[2], from[3]);
    vst1q_u8(to, vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second)));
  }
  static void narrow(const I (&from)[4], int8_t* to) { narrow(from, reinterpret_cast<uint8_t*>(to)); }
  static void narrow(const I (&from)[4], uint16_t* to) {
    vst1q_u16(to, low_halves(from[0], from[1]));
    vst1q_u16(to + 8, low_halves(from[2], from[3]));
  }
  static void narrow(const I (&from)[4], int16_t* to) { narrow(from, reinterpret_cast<uint16_t*>(to)); }
};

}  // namespace

constexpr QuantizeKernels quantize_kernels_neon = QuantizeArrays<NarrowingNeon>::table();
constexpr RequantizeKernels requantize_kernels_neon = RequantizeArrays<NarrowingNeon>::requantize_table();

}  // namespace tenon::kernels
