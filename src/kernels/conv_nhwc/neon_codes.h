// What sums become, in NEON's registers.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/tile.h"
#include "kernels/neon_codes.h"

namespace tenon::kernels {
namespace {

// Stores 8 codes of all rows, if they are to be stored: sums(i, half) are four of those of row i.
template <int Rows, class Sums>
[[gnu::always_inline]] inline void store_codes(const NhwcTile& tile, int64_t column, Sums sums) {
  if (column >= tile.stored) return;
  const NeonCodes codes(tile, column);
  const auto store = [&]<CodeRange Range, bool Signed>() __attribute__((always_inline)) {
    uint8_t last[8 * Rows];
    const bool is_last = column + 8 > tile.stored;
    const int64_t step = is_last ? 8 : tile.pixel;
    uint8_t* to = is_last ? last : tile.y + column;
    // Each row by itself: sums that are chosen in a loop would have to be in memory.
    const auto store_row = [&](int i) __attribute__((always_inline)) {
      const int32x4_t both[2] = {sums(i, 0), sums(i, 1)};
      const uint8x8_t of_row = codes.template operator()<Range, Signed>(both);
      vst1_u8(to + i * step, of_row);
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
