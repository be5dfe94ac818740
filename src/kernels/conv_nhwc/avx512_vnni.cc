#include <immintrin.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/avx512_codes.h"
#include "kernels/conv_nhwc/avx512_depthwise.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 32, vectors = 2;

template <int Rows>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  const Avx512Codes codes(tile);
  const uint8_t* weights = tile.weights;
  for (int64_t column = 0; column < tile.panels * columns; column += columns) {
    __m512i acc[Rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      acc[i][0] = _mm512_loadu_si512(tile.bias + column);
      acc[i][1] = _mm512_loadu_si512(tile.bias + column + 16);
    }
    const uint8_t* const* next = tile.pixels;
    for (int64_t tap = 0; tap < tile.taps; ++tap, next += Rows) {
      const uint8_t* pixels[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) pixels[i] = next[i];
      for (int64_t c = 0; c < tile.bytes; c += 4, weights += 4 * columns) {
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

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {"avx512_vnni",
          true,
          false,
          rows,
          columns,
          4,
          1,
          {multiply<Rows + 1>...},
          {depthwise<1>, depthwise<2>, depthwise<4>}};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_avx512_vnni = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
