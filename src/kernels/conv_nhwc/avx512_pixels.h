// Some pixels times panels of weights, with AVX-512's dot products.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <cstring>

#include "kernels/conv_nhwc/avx512_codes.h"

namespace tenon::kernels {
namespace {

constexpr int vnni_rows = 12, vnni_columns = 32;

// The first `Rows` pixels of a tile that has `count`, times the panels from `panel` on. Sums, weights and a pixel fill
// the registers: each weight that is loaded is used for all pixels, each pixel for all columns.
template <int Rows, int Panels>
[[gnu::noinline, gnu::noclone]] void multiply_panels(const NhwcTile& given, int count, int64_t panel,
                                                     int64_t panel_bytes) {
  constexpr int vectors = 2 * Panels;
  const NhwcTile tile = given;  // which nothing that is stored can change
  const int64_t column = panel * vnni_columns;
  const uint8_t* weights = tile.weights + panel * panel_bytes;
  __m512i acc[Rows][vectors];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) acc[i][v] = _mm512_loadu_si512(tile.bias + column + 16 * v);
  }
  const uint8_t* const* next = tile.pixels;
  for (int64_t tap = 0; tap < tile.taps; ++tap, next += count) {
    const uint8_t* pixels[Rows];
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) pixels[i] = next[i];
    for (int64_t c = 0; c < tile.bytes; c += 4, weights += 4 * vnni_columns) {
      __m512i b[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) b[v] = _mm512_loadu_si512(weights + v / 2 * panel_bytes + v % 2 * 64);
#pragma GCC unroll 12
      for (int i = 0; i < Rows; ++i) {
        int32_t four;
        std::memcpy(&four, pixels[i] + c, sizeof four);
        const __m512i a = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) acc[i][v] = _mm512_dpbusd_epi32(acc[i][v], a, b[v]);
      }
    }
  }
  const Avx512Codes codes(tile);
  store_codes<Rows>(tile, codes, column, [&](int i, int half) { return acc[i][half]; });
  if constexpr (Panels > 1)
    store_codes<Rows>(tile, codes, column + vnni_columns, [&](int i, int half) { return acc[i][2 + half]; });
}

// The first `Rows` pixels of a tile that has `count`. Panels of weights are `panel_bytes` apart.
template <int Rows>
void multiply_pixels(const NhwcTile& tile, int count, int64_t panel_bytes) {
  constexpr int half = (Rows + 1) / 2, rest = Rows > vnni_rows / 2 ? Rows - half : 0, first = Rows - rest;
  NhwcTile below = tile;
  below.pixels += first;
  below.y += first * tile.pixel;
  int64_t panel = 0;
  for (; panel + 2 <= tile.panels; panel += 2) {
    multiply_panels<first, 2>(tile, count, panel, panel_bytes);
    if constexpr (rest > 0) multiply_panels<rest, 2>(below, count, panel, panel_bytes);
  }
  if (panel < tile.panels) multiply_panels<Rows, 1>(tile, count, panel, panel_bytes);
}

}  // namespace
}  // namespace tenon::kernels
