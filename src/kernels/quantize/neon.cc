#include "kernels/simd/neon.h"

#include "kernels/quantize/codes_kernel.h"
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

  // Below the bits of 2^23, a 16-bit number makes a float that is larger by it.
  static void centered(uint8x16_t bytes, int32_t zero, F (&to)[4]) {
    const uint16x8_t upper = vdupq_n_u16(0x4b00);
    const float32x4_t base = vdupq_n_f32(static_cast<float>(8388608 + zero));
    const uint16x8_t halves[2] = {vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)};
    for (int k = 0; k < 2; ++k) {
      to[2 * k] = (F)vsubq_f32(vreinterpretq_f32_u16(vzip1q_u16(halves[k], upper)), base);
      to[2 * k + 1] = (F)vsubq_f32(vreinterpretq_f32_u16(vzip2q_u16(halves[k], upper)), base);
    }
  }
  static void centered(const uint8_t* from, int32_t zero, F (&to)[4]) { centered(vld1q_u8(from), zero, to); }
  static void centered(const int8_t* from, int32_t zero, F (&to)[4]) {
    centered(veorq_u8(vreinterpretq_u8_s8(vld1q_s8(from)), vdupq_n_u8(0x80)), zero + 128, to);
  }

  // A quarter of the table at a time: indices outside of it leave what is there.
  static void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
    uint8x16x4_t quarters[4];
    for (int k = 0; k < 4; ++k) quarters[k] = vld1q_u8_x4(table + 64 * k);
    const auto sixteen = [&](const uint8_t* from, uint8_t* to) {
      const uint8x16_t index = vld1q_u8(from);
      uint8x16_t found = vqtbl4q_u8(quarters[0], index);
      found = vqtbx4q_u8(found, quarters[1], vsubq_u8(index, vdupq_n_u8(64)));
      found = vqtbx4q_u8(found, quarters[2], vsubq_u8(index, vdupq_n_u8(128)));
      vst1q_u8(to, vqtbx4q_u8(found, quarters[3], vsubq_u8(index, vdupq_n_u8(192))));
    };
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) sixteen(x + i, y + i);
    if (i == n) return;
    uint8_t last[16] = {};
    std::copy_n(x + i, n - i, last);
    sixteen(last, last);
    std::copy_n(last, n - i, y + i);
  }
};

}  // namespace

constexpr QuantizeKernels quantize_kernels_neon = QuantizeArrays<NarrowingNeon>::table();
constexpr RequantizeKernels requantize_kernels_neon = RequantizeArrays<NarrowingNeon>::requantize_table();
constexpr CodeKernels code_kernels_neon = CodeArrays<NarrowingNeon>::code_table();

}  // namespace tenon::kernels
