// Depthwise convolution with AVX-512's dot products.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include "kernels/conv_nhwc/avx512_codes.h"

namespace tenon::kernels {
namespace {

// The wide blocks.
template <int Outputs>
[[gnu::always_inline]] inline void depthwise_wide(const NhwcDepthwiseTile& tile, const Avx512Codes& codes) {
  const uint8_t* weights = tile.weights;
  for (int64_t c = 0; c < tile.wide; c += nhwc_wide) {
    const __mmask64 some = first_of_64(tile.channels - c);
    __m512i acc[Outputs][4];
    __m512 scales[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m512i bias = _mm512_loadu_si512(tile.bias + c + 16 * v);
      for (int j = 0; j < Outputs; ++j) acc[j][v] = bias;
      scales[v] = _mm512_loadu_ps(tile.scales + c + 16 * v);
    }
    const uint8_t* const* pixels = tile.pixels;
    for (int64_t quad = 0; quad < tile.quads; ++quad, pixels += 4) {
      __m512i pixel[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) pixel[i] = _mm512_maskz_loadu_epi8(some, pixels[i] + c);
      const __m512i low01 = _mm512_unpacklo_epi8(pixel[0], pixel[1]), low23 = _mm512_unpacklo_epi8(pixel[2], pixel[3]);
      const __m512i high01 = _mm512_unpackhi_epi8(pixel[0], pixel[1]);
      const __m512i high23 = _mm512_unpackhi_epi8(pixel[2], pixel[3]);
      const __m512i four[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                               _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
#pragma GCC unroll 4
      for (int j = 0; j < Outputs; ++j, weights += 4 * nhwc_wide) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v)
          acc[j][v] = _mm512_dpbusd_epi32(acc[j][v], four[v], _mm512_loadu_si512(weights + 64 * v));
      }
    }
    for_size(tile, [&]<bool Small>() {
#pragma GCC unroll 4
      for (int j = 0; j < Outputs; ++j)
        _mm512_mask_storeu_epi8(tile.y + j * tile.channels + c, some,
                                codes.template interleaved<Small>(acc[j], scales));
    });
  }
}

template <int Outputs>
void depthwise(const NhwcDepthwiseTile& given) {
  const NhwcDepthwiseTile tile = given;
  const Avx512Codes codes(tile);
  depthwise_wide<Outputs>(tile, codes);
  // Four pixels of 16 channels as 16 channels of four pixels: first by words of four bytes, then within them.
  const __m512i words = transposed_order();
  const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const uint8_t* weights = tile.weights + tile.wide * tile.quads * Outputs * 4;
  for (int64_t c = tile.wide; c < tile.channels; c += nhwc_lanes) {
    const __mmask16 some = first_of_16(tile.channels - c);
    __m512i acc[Outputs];
    for (int j = 0; j < Outputs; ++j) acc[j] = _mm512_loadu_si512(tile.bias + c);
    const uint8_t* const* pixels = tile.pixels;
    for (int64_t quad = 0; quad < tile.quads; ++quad, pixels += 4) {
      __m512i four = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(some, pixels[0] + c));
      four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(some, pixels[1] + c), 1);
      four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(some, pixels[2] + c), 2);
      four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(some, pixels[3] + c), 3);
      four = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, four), bytes);
#pragma GCC unroll 4
      for (int j = 0; j < Outputs; ++j, weights += 4 * nhwc_lanes)
        acc[j] = _mm512_dpbusd_epi32(acc[j], four, _mm512_loadu_si512(weights));
    }
    const __m512 scales = _mm512_loadu_ps(tile.scales + c);
    for_size(tile, [&]<bool Small>() {
#pragma GCC unroll 4
      for (int j = 0; j < Outputs; ++j)
        _mm_mask_storeu_epi8(tile.y + j * tile.channels + c, some, codes.template one_pixel<Small>(acc[j], scales));
    });
  }
}

}  // namespace
}  // namespace tenon::kernels
