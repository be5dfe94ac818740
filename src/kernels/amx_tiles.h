// The tile registers of AMX. For files that are built for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tenon::kernels {
namespace {

struct alignas(64) AmxTileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t row_count[16] = {};
};
static_assert(sizeof(AmxTileConfig) == 64);

// All registers are 16 rows of 64 bytes.
constexpr AmxTileConfig whole_amx_tiles() {
  AmxTileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.bytes_per_row[i] = 64;
    config.row_count[i] = 16;
  }
  return config;
}

inline void enter_amx() {
  static constexpr AmxTileConfig config = whole_amx_tiles();
  _tile_loadconfig(&config);
}

inline void leave_amx() { _tile_release(); }

// What intrinsics do, for registers whose number is a constant and no literal.
template <int Register>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Register));
}
template <int Register>
[[gnu::always_inline]] inline void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(Register), "r"(to), "r"(stride) : "memory");
}
// Products of signed bytes.
template <int Sums, int Left, int Right>
[[gnu::always_inline]] inline void multiply_tiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
}

}  // namespace
}  // namespace tenon::kernels
