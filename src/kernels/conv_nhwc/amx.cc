#include <immintrin.h>

#include <utility>

#include "kernels/amx_code_products.h"
#include "kernels/conv_nhwc/avx512_codes.h"
#include "kernels/conv_nhwc/avx512_depthwise.h"
#include "kernels/conv_nhwc/avx512_pixels.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Registers 0 and 1 hold sums, 2 codes of pixels, 3 and 4 weights.
constexpr int rows = 16, columns = 32, row_bytes = 64;

// What the pixels of all taps hold, side by side, and zeros up to whole rows of registers.
void gather(const NhwcTile& tile, int count, int64_t bytes, uint8_t* to) {
  for (int i = 0; i < count; ++i, to += bytes) {
    uint8_t* at = to;
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      const uint8_t* from = tile.pixels[tap * count + i];
      int64_t c = 0;
      for (; c + row_bytes <= tile.bytes; c += row_bytes, at += row_bytes)
        _mm512_storeu_si512(at, _mm512_loadu_si512(from + c));
      if (c == tile.bytes) continue;
      const __mmask64 some = (__mmask64{1} << (tile.bytes - c)) - 1;
      _mm512_mask_storeu_epi8(at, some, _mm512_maskz_loadu_epi8(some, from + c));
      at += tile.bytes - c;
    }
    if (at < to + bytes) _mm512_mask_storeu_epi8(at, (__mmask64{1} << (to + bytes - at)) - 1, _mm512_setzero_si512());
  }
}

// The distance of pixels that lie as registers load them; 0 for others.
int64_t distance(const NhwcTile& tile, int count) {
  if (tile.taps != 1 || count != rows || tile.bytes % row_bytes != 0) return 0;
  const int64_t step = tile.pixels[1] - tile.pixels[0];
  for (int i = 2; i < count; ++i) {
    if (tile.pixels[i] - tile.pixels[i - 1] != step) return 0;
  }
  return step;
}

// Products of so few bytes leave most of a register empty.
constexpr int64_t few_bytes = 32;

template <int Rows>
void multiply_few_bytes(const NhwcTile& given) {
  constexpr int first = Rows < vnni_rows ? Rows : vnni_rows;
  constexpr int64_t panel_bytes = int64_t{row_bytes} * columns;
  multiply_pixels<first>(given, Rows, panel_bytes);
  if constexpr (Rows > first) {
    NhwcTile rest = given;
    rest.pixels += first;
    rest.y += first * rest.pixel;
    multiply_pixels<Rows - first>(rest, Rows, panel_bytes);
  }
}

template <int Rows>
void multiply(const NhwcTile& given) {
  if (given.taps * given.bytes <= few_bytes) return multiply_few_bytes<Rows>(given);
  const NhwcTile tile = given;  // which nothing that is stored can change
  const Avx512Codes codes(tile);
  int64_t step = distance(tile, Rows);
  const int64_t bytes = (tile.taps * tile.bytes + row_bytes - 1) / row_bytes * row_bytes;
  const uint8_t* pixels = tile.pixels[0];
  // Rows that are not used hold anything.
  const Scratch memory(step == 0 ? static_cast<size_t>(rows * bytes) : 0);
  if (step == 0) {
    gather(tile, Rows, bytes, memory.as<uint8_t>());
    pixels = memory.as<uint8_t>();
    step = bytes;
  }
  const uint8_t* weights = tile.weights;
  alignas(64) int32_t sums[rows][columns];
  for (int64_t column = 0; column < tile.panels * columns; column += columns) {
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t c = 0; c < bytes; c += row_bytes, weights += row_bytes * columns) {
      _tile_loadd(2, pixels + c, step);
      _tile_loadd(3, weights, 4 * columns);
      _tile_loadd(4, weights + row_bytes, 4 * columns);
      _tile_dpbusd(0, 2, 3);
      _tile_dpbusd(1, 2, 4);
    }
    _tile_stored(0, sums[0], sizeof sums[0]);
    _tile_stored(1, sums[0] + columns / 2, sizeof sums[0]);
    const __m512i bias[2] = {_mm512_loadu_si512(tile.bias + column), _mm512_loadu_si512(tile.bias + column + 16)};
    store_codes<Rows>(tile, codes, column, [&](int i, int half) {
      return _mm512_add_epi32(_mm512_load_si512(sums[i] + 16 * half), bias[half]);
    });
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {.name = "amx",
          .unsigned_pixels = true,
          .rows = rows,
          .columns = columns,
          .group = 4,
          .step = row_bytes,
          .multiply = {multiply<Rows + 1>...},
          .depthwise = {depthwise<1>, depthwise<2>, depthwise<4>},
          .enter = enter_amx,
          .leave = leave_amx,
          .to_codes = multiply_codes,
          .gather = gather,
          .few_bytes = few_bytes,
          .wide_depthwise = true};
}

static_assert(columns == code_tile_columns && row_bytes == code_step_bytes);

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_amx = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
