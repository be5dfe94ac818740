#include <immintrin.h>

#include <cstring>
#include <utility>

#include "kernels/amx_tiles.h"
#include "kernels/conv_nhwc/avx512_codes.h"
#include "kernels/conv_nhwc/avx512_depthwise.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Registers 0 and 1 hold sums, 2 codes of pixels, 3 and 4 weights.
constexpr int rows = 16, columns = 32, row_bytes = 64;

// What the pixels of all taps hold, side by side, and zeros up to whole rows of registers.
void gather(const NhwcTile& tile, int count, int64_t bytes, uint8_t* to) {
  for (int i = 0; i < count; ++i, to += bytes) {
    uint8_t* at = to;
    for (int64_t tap = 0; tap < tile.taps; ++tap, at += tile.bytes)
      std::memcpy(at, tile.pixels[tap * count + i], static_cast<size_t>(tile.bytes));
    std::memset(at, 0, static_cast<size_t>(to + bytes - at));
  }
  std::memset(to, 0, static_cast<size_t>((rows - count) * bytes));
}

template <int Rows>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  const Avx512Codes codes(tile);
  const int64_t bytes = (tile.taps * tile.bytes + row_bytes - 1) / row_bytes * row_bytes;
  const Scratch memory(static_cast<size_t>(rows * bytes));
  gather(tile, Rows, bytes, memory.as<uint8_t>());
  const uint8_t* weights = tile.weights;
  alignas(64) int32_t sums[rows][columns];
  for (int64_t column = 0; column < tile.panels * columns; column += columns) {
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t c = 0; c < bytes; c += row_bytes, weights += row_bytes * columns) {
      _tile_loadd(2, memory.as<uint8_t>() + c, bytes);
      _tile_loadd(3, weights, 4 * columns);
      _tile_loadd(4, weights + row_bytes, 4 * columns);
      _tile_dpbusd(0, 2, 3);
      _tile_dpbusd(1, 2, 4);
    }
    _tile_stored(0, sums[0], sizeof sums[0]);
    _tile_stored(1, sums[0] + columns / 2, sizeof sums[0]);
    for (int v = 0; v < columns; v += 16) {
      const __m512 scales = _mm512_loadu_ps(tile.scales + column + v);
      const __m512i bias = _mm512_loadu_si512(tile.bias + column + v);
      const __mmask16 some = first_bytes(tile.stored - column - v);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        const __m512i sum = _mm512_add_epi32(_mm512_load_si512(sums[i] + v), bias);
        _mm_mask_storeu_epi8(tile.y + i * tile.pixel + column + v, some, codes(sum, scales));
      }
    }
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {"amx",
          true,
          rows,
          columns,
          4,
          row_bytes,
          {multiply<Rows + 1>...},
          {depthwise<1>, depthwise<2>, depthwise<4>},
          enter_amx,
          leave_amx};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_amx = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
