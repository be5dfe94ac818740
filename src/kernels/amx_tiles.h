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

}  // namespace
}  // namespace tenon::kernels
