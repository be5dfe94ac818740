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

  // Products of differences of codes are integers of 18 bits.
  static int32x4_t scaled(int32x4_t product, float factor) {
    const float32x4_t base = vdupq_n_f32(12582912.0f);
    const float32x4_t exact = vsubq_f32(vreinterpretq_f32_s32(vaddq_s32(product, vreinterpretq_s32_f32(base))), base);
    return vcvtnq_s32_f32(vmulq_n_f32(exact, factor));
  }
  static int16x8_t scaled(int16x8_t a, int16x8_t b, const CodeArithmetic& by) {
    const int32x4_t low = scaled(vmull_s16(vget_low_s16(a), vget_low_s16(b)), by.a_factor),
                    high = scaled(vmull_high_s16(a, b), by.a_factor);
    return vqaddq_s16(vqmovn_high_s32(vqmovn_s32(low), high), vdupq_n_s16(static_cast<int16_t>(by.zero)));
  }
  static void multiply(const uint8_t* a, const uint8_t* b, uint8_t* y, const CodeArithmetic& by) {
    const uint8x16_t x = vld1q_u8(a), w = vld1q_u8(b);
    const uint8x16_t x_zero = vdupq_n_u8(static_cast<uint8_t>(by.a_zero)),
                     w_zero = vdupq_n_u8(static_cast<uint8_t>(by.b_zero));
    const auto low = [](uint8x16_t codes, uint8x16_t zero) {
      return vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(codes), vget_low_u8(zero)));
    };
    const auto high = [](uint8x16_t codes, uint8x16_t zero) {
      return vreinterpretq_s16_u16(vsubl_high_u8(codes, zero));
    };
    const int16x8_t first = scaled(low(x, x_zero), low(w, w_zero), by),
                    second = scaled(high(x, x_zero), high(w, w_zero), by);
    vst1q_u8(y, vqmovun_high_s16(vqmovun_s16(first), second));
  }
  static void multiply(const int8_t* a, const int8_t* b, int8_t* y, const CodeArithmetic& by) {
    const int8x16_t x = vld1q_s8(a), w = vld1q_s8(b);
    const int8x16_t x_zero = vdupq_n_s8(static_cast<int8_t>(by.a_zero)),
                    w_zero = vdupq_n_s8(static_cast<int8_t>(by.b_zero));
    const int16x8_t first = scaled(vsubl_s8(vget_low_s8(x), vget_low_s8(x_zero)),
                                   vsubl_s8(vget_low_s8(w), vget_low_s8(w_zero)), by),
                    second = scaled(vsubl_high_s8(x, x_zero), vsubl_high_s8(w, w_zero), by);
    vst1q_s8(y, vqmovn_high_s16(vqmovn_s16(first), second));
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
