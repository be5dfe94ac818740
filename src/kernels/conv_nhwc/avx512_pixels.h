// Some pixels times panels of weights, with AVX-512's dot products.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <cstring>

#include "kernels/conv_nhwc/avx512_codes.h"

namespace tenon::kernels {
namespace {

constexpr int vnni_rows = 8, vnni_columns = 32;

// The first `Rows` pixels of a tile that has `count`. Panels of weights are `panel_bytes` apart.
template <int Rows>
void multiply_pixels(const NhwcTile& given, int count, int64_t panel_bytes) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  const Avx512Codes codes(tile);
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    const int64_t column = panel * vnni_columns;
    const uint8_t* weights = tile.weights + panel * panel_bytes;
    __m512i acc[Rows][2];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      acc[i][0] = _mm512_loadu_si512(tile.bias + column);
      acc[i][1] = _mm512_loadu_si512(tile.bias + column + 16);
    }
    const uint8_t* const* next = tile.pixels;
    for (int64_t tap = 0; tap < tile.taps; ++tap, next += count) {
      const uint8_t* pixels[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) pixels[i] = next[i];
      for (int64_t c = 0; c < tile.bytes; c += 4, weights += 4 * vnni_columns) {
        const __m512i b0 = _mm512_loadu_si512(weights), b1 = _mm512_loadu_si512(weights + 64);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          int32_t four;
          std::memcpy(&four, pixels[i] + c, sizeof four);
          const __m512i a = _mm512_set1_epi32(four);
          acc[i][0] = _mm512_dpbusd_epi32(acc[i][0], a, b0);
          acc[i][1] = _mm512_dpbusd_epi32(acc[i][1], a, b1);
        }
      }
    }
    store_codes<Rows>(tile, codes, column, [&](int i, int half) { return acc[i][half]; });
  }
}

}  // namespace
}  // namespace tenon::kernels
