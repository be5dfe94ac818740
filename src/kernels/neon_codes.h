// What sums become, in NEON's registers.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <arm_neon.h>

#include "kernels/code_products.h"

namespace tenon::kernels {
namespace {

// Sums that are scaled, rounded and limited.
class NeonCodes {
 public:
  template <class Tile>
  NeonCodes(const Tile& tile, int64_t column)
      : scales_{vld1q_f32(tile.scales + column), vld1q_f32(tile.scales + column + 4)},
        low_(vdupq_n_f32(static_cast<float>(tile.lowest - tile.zero))),
        high_(vdupq_n_f32(static_cast<float>(tile.highest - tile.zero))),
        shifted_zero_(vdupq_n_s32(code_shift_bits - tile.zero)),
        zero_(vdupq_n_s16(static_cast<int16_t>(tile.zero))) {}

  // Two vectors of sums of one pixel become 8 codes.
  template <CodeRange Range, bool Signed>
  [[gnu::always_inline]] uint8x8_t operator()(const int32x4_t (&sums)[2]) const {
    return narrowed<Signed>(halves<Range>(sums, scales_));
  }

  // Codes as numbers of 16 bits that are not limited yet.
  template <CodeRange Range>
  [[gnu::always_inline]] int16x8_t halves(const int32x4_t (&sums)[2], const float32x4_t (&scales)[2]) const {
    const int32x4_t low = shifted<Range>(sums[0], scales[0]), high = shifted<Range>(sums[1], scales[1]);
    return Range == CodeRange::tiny ? lowest_bits(low, high) : saturated(low, high);
  }
  template <bool Signed>
  [[gnu::always_inline]] static uint8x8_t narrowed(int16x8_t halves) {
    return Signed ? vreinterpret_u8_s8(vqmovn_s16(halves)) : vqmovun_s16(halves);
  }

 private:
  // Whole numbers, as the lowest bits of floats.
  template <CodeRange Range>
  [[gnu::always_inline]] int32x4_t shifted(int32x4_t sum, float32x4_t scale) const {
    const float32x4_t shift = vdupq_n_f32(code_shift);
    float32x4_t scaled;
    if constexpr (Range == CodeRange::any)
      scaled = vminnmq_f32(vmaxnmq_f32(vmulq_f32(vcvtq_f32_s32(sum), scale), low_), high_);
    else
      scaled = vmulq_f32(vsubq_f32(vreinterpretq_f32_s32(sum), shift), scale);
    return vreinterpretq_s32_f32(vaddq_f32(scaled, shift));
  }

  // Both plus the zero point.
  [[gnu::always_inline]] int16x8_t saturated(int32x4_t low, int32x4_t high) const {
    return vqmovn_high_s32(vqmovn_s32(vsubq_s32(low, shifted_zero_)), vsubq_s32(high, shifted_zero_));
  }
  [[gnu::always_inline]] int16x8_t lowest_bits(int32x4_t low, int32x4_t high) const {
    static_assert((code_shift_bits & 0xffff) == 0);
    return vqaddq_s16(vuzp1q_s16(vreinterpretq_s16_s32(low), vreinterpretq_s16_s32(high)), zero_);
  }

  float32x4_t scales_[2], low_, high_;
  int32x4_t shifted_zero_;
  int16x8_t zero_;
};

// Calls body<Range, Signed>.
template <CodeRange Range, class Tile, class Body>
[[gnu::always_inline]] inline void for_kind_of(const Tile& tile, Body body) {
  tile.lowest < 0 ? body.template operator()<Range, true>() : body.template operator()<Range, false>();
}
template <class Tile, class Body>
[[gnu::always_inline]] inline void for_kind(const Tile& tile, Body body) {
  switch (tile.range) {
    case CodeRange::any:
      return for_kind_of<CodeRange::any>(tile, body);
    case CodeRange::small:
      return for_kind_of<CodeRange::small>(tile, body);
    case CodeRange::tiny:
      return for_kind_of<CodeRange::tiny>(tile, body);
  }
}

}  // namespace
}  // namespace tenon::kernels
