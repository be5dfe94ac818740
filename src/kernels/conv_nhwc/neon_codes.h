// What sums become, in NEON's registers.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/tile.h"

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
        shifted_zero_(vdupq_n_s32(nhwc_shift_bits - tile.zero)),
        zero_(vdupq_n_s16(static_cast<int16_t>(tile.zero))) {}

  // Two vectors of sums of one pixel become 8 codes.
  template <NhwcRange Range, bool Signed>
  [[gnu::always_inline]] uint8x8_t operator()(const int32x4_t (&sums)[2]) const {
    const int32x4_t low = shifted<Range>(sums[0], scales_[0]), high = shifted<Range>(sums[1], scales_[1]);
    const int16x8_t halves = Range == NhwcRange::tiny ? lowest_bits(low, high) : saturated(low, high);
    return Signed ? vreinterpret_u8_s8(vqmovn_s16(halves)) : vqmovun_s16(halves);
  }

 private:
  // Whole numbers, as the lowest bits of floats.
  template <NhwcRange Range>
  [[gnu::always_inline]] int32x4_t shifted(int32x4_t sum, float32x4_t scale) const {
    const float32x4_t shift = vdupq_n_f32(nhwc_shift);
    float32x4_t scaled;
    if constexpr (Range == NhwcRange::any)
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
    static_assert((nhwc_shift_bits & 0xffff) == 0);
    return vqaddq_s16(vuzp1q_s16(vreinterpretq_s16_s32(low), vreinterpretq_s16_s32(high)), zero_);
  }

  float32x4_t scales_[2], low_, high_;
  int32x4_t shifted_zero_;
  int16x8_t zero_;
};

// Calls body<Range, Signed>.
template <NhwcRange Range, class Tile, class Body>
[[gnu::always_inline]] inline void for_kind_of(const Tile& tile, Body body) {
  tile.lowest < 0 ? body.template operator()<Range, true>() : body.template operator()<Range, false>();
}
template <class Tile, class Body>
[[gnu::always_inline]] inline void for_kind(const Tile& tile, Body body) {
  switch (tile.range) {
    case NhwcRange::any:
      return for_kind_of<NhwcRange::any>(tile, body);
    case NhwcRange::small:
      return for_kind_of<NhwcRange::small>(tile, body);
    case NhwcRange::tiny:
      return for_kind_of<NhwcRange::tiny>(tile, body);
  }
}

// Stores 8 codes of all rows, if they are to be stored: sums(i, half) are four of those of row i.
template <int Rows, class Sums>
[[gnu::always_inline]] inline void store_codes(const NhwcTile& tile, int64_t column, Sums sums) {
  if (column >= tile.stored) return;
  const NeonCodes codes(tile, column);
  const auto store = [&]<NhwcRange Range, bool Signed>() __attribute__((always_inline)) {
    uint8_t last[8 * Rows];
    const bool is_last = column + 8 > tile.stored;
    const int64_t step = is_last ? 8 : tile.pixel;
    uint8_t* to = is_last ? last : tile.y + column;
    // Each row by itself: sums that are chosen in a loop would have to be in memory.
    const auto store_row = [&](int i) __attribute__((always_inline)) {
      const int32x4_t both[2] = {sums(i, 0), sums(i, 1)};
      vst1_u8(to + i * step, codes.template operator()<Range, Signed>(both));
    };
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) { (store_row(I), ...); }
    (std::make_integer_sequence<int, Rows>{});
    if (!is_last) return;
    for (int i = 0; i < Rows; ++i)
      std::memcpy(tile.y + i * tile.pixel + column, last + 8 * i, static_cast<size_t>(tile.stored - column));
  };
  for_kind(tile, store);
}

}  // namespace
}  // namespace tenon::kernels
