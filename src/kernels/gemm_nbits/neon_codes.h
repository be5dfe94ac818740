// Codes of few bits in NEON's registers, and dot products with them.
#pragma once

#include "kernels/simd/neon.h"

#include "kernels/gemm_nbits/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct NbitsNeon : Neon {
  static constexpr int vectors = 2;
  using Codes = int8x16_t;

  template <int bits>
  static void codes(const uint8_t* from, int group, Codes (&to)[vectors]) {
    if constexpr (bits == 8) {
      for (int v = 0; v < vectors; ++v)
        to[v] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from + 16 * v), vdupq_n_u8(0x80)));
    } else if constexpr (bits == 4) {
      const uint8x16_t bytes = vld1q_u8(from);
      to[0] = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
      to[1] = vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
    } else {
      const uint8x16_t bytes = vld1q_u8(from), three = vdupq_n_u8(3);
      const uint8x16_t own = group == 0 ? bytes : vshrq_n_u8(bytes, 4);
      to[0] = vreinterpretq_s8_u8(vandq_u8(own, three));
      to[1] = vreinterpretq_s8_u8(group == 0 ? vandq_u8(vshrq_n_u8(own, 2), three) : vshrq_n_u8(own, 2));
    }
  }
  // Codes of 8 bits are signed, as the digits are.
  static constexpr int32_t excess(int bits) { return bits == 8 ? 0 : 1 << (bits - 1); }
  static int8x16_t digits(const int8_t* from) { return vld1q_s8(from); }

  template <int bits, int lane>
  static I dot(I sums, Codes codes, int8x16_t digits) {
    return (I)vdotq_laneq_s32((int32x4_t)sums, codes, digits, lane);
  }
};

}  // namespace
}  // namespace tenon::kernels
