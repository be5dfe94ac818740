#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 8, group = 4;

// Sums of 8 channels that are scaled, rounded and limited.
class Codes {
 public:
  template <class Tile>
  explicit Codes(const Tile& tile)
      : zero_(_mm256_set1_epi32(tile.zero)),
        low_(_mm256_set1_ps(static_cast<float>(tile.lowest - tile.zero))),
        high_(_mm256_set1_ps(static_cast<float>(tile.highest - tile.zero))) {}

  void store(__m256i sums, const float* scales, uint8_t* to, int64_t count) const {
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_loadu_ps(scales));
    // The lowest where a scale is NaN.
    const __m256 limited = _mm256_min_ps(_mm256_max_ps(scaled, low_), high_);
    const __m256i codes = _mm256_add_epi32(_mm256_cvtps_epi32(limited), zero_);
    // The lowest byte of each of the eight.
    const __m256i lowest = _mm256_shuffle_epi8(codes, _mm256_set1_epi32(0x0c080400));
    const __m256i both = _mm256_permutevar8x32_epi32(lowest, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    const int64_t bytes = _mm_cvtsi128_si64(_mm256_castsi256_si128(both));
    std::memcpy(to, &bytes, static_cast<size_t>(std::min<int64_t>(count, 8)));
  }

 private:
  __m256i zero_;
  __m256 low_, high_;
};

// Four bytes of each of four pixels or columns as 16-bit numbers.
inline __m256i signed_halves(const uint8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// The sums of neighbours: those of four columns from `a`, then those of four from `b`.
inline __m256i sums_of_pairs(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0b11'01'10'00);
}

template <int Rows>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  const Codes codes(tile);
  const uint8_t* weights = tile.weights;
  for (int64_t column = 0; column < tile.panels * columns; column += columns) {
    __m256i acc[Rows][2];
    for (int i = 0; i < Rows; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      for (int64_t c = 0; c < tile.bytes; c += group, weights += group * columns) {
        const __m256i b0 = signed_halves(weights), b1 = signed_halves(weights + 16);
        for (int i = 0; i < Rows; ++i) {
          int32_t four;
          std::memcpy(&four, tile.pixels[tap * Rows + i] + c, sizeof four);
          const __m256i a = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
          acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(a, b0));
          acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(a, b1));
        }
      }
    }
    const __m256i bias = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile.bias + column));
    for (int i = 0; i < Rows; ++i)
      codes.store(_mm256_add_epi32(sums_of_pairs(acc[i][0], acc[i][1]), bias), tile.scales + column,
                  tile.y + i * tile.pixel + column, tile.stored - column);
  }
}

// Eight bytes, or the first four and zeros.
inline __m128i load_bytes(const uint8_t* from, bool all) {
  int64_t bytes = 0;
  std::memcpy(&bytes, from, all ? 8 : 4);
  return _mm_cvtsi64_si128(bytes);
}

template <int Outputs>
void depthwise(const NhwcDepthwiseTile& given) {
  const NhwcDepthwiseTile tile = given;
  const Codes codes(tile);
  for (int64_t c = 0; c < tile.channels; c += 8) {
    const bool all = c + 8 <= tile.channels;
    const int64_t lane = c % nhwc_lanes;
    const uint8_t* weights = tile.weights + ((c - lane) * tile.quads * Outputs + lane) * 4;
    __m256i acc[Outputs][2];
    for (int j = 0; j < Outputs; ++j) acc[j][0] = acc[j][1] = _mm256_setzero_si256();
    for (int64_t quad = 0; quad < tile.quads; ++quad) {
      const uint8_t* const* pixels = tile.pixels + 4 * quad;
      const __m128i even = _mm_unpacklo_epi8(load_bytes(pixels[0] + c, all), load_bytes(pixels[1] + c, all));
      const __m128i odd = _mm_unpacklo_epi8(load_bytes(pixels[2] + c, all), load_bytes(pixels[3] + c, all));
      const __m256i a0 = _mm256_cvtepu8_epi16(_mm_unpacklo_epi16(even, odd));
      const __m256i a1 = _mm256_cvtepu8_epi16(_mm_unpackhi_epi16(even, odd));
      for (int j = 0; j < Outputs; ++j, weights += 4 * nhwc_lanes) {
        acc[j][0] = _mm256_add_epi32(acc[j][0], _mm256_madd_epi16(a0, signed_halves(weights)));
        acc[j][1] = _mm256_add_epi32(acc[j][1], _mm256_madd_epi16(a1, signed_halves(weights + 16)));
      }
    }
    const __m256i bias = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile.bias + c));
    for (int j = 0; j < Outputs; ++j)
      codes.store(_mm256_add_epi32(sums_of_pairs(acc[j][0], acc[j][1]), bias), tile.scales + c,
                  tile.y + j * tile.channels + c, tile.channels - c);
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {.name = "avx2",
          .unsigned_pixels = true,
          .rows = rows,
          .columns = columns,
          .group = group,
          .multiply = {multiply<Rows + 1>...},
          .depthwise = {depthwise<1>, depthwise<2>, depthwise<4>}};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_avx2 = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
