// What sums become, in AVX-512's registers.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <immintrin.h>

#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

// The first `count` of 16, 32 or 64 bytes.
inline __mmask16 first_of_16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
}
inline __mmask32 first_of_32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : count <= 0 ? 0 : (__mmask32{1} << count) - 1;
}

inline __mmask64 first_of_64(int64_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }

// Dwords 0, 4, 8, 12, 1, 5, …: four by four, transposed.
inline __m512i transposed_order() { return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15); }

// Sums that are scaled, rounded and limited. Those that are small need no limits before they are narrowed.
class Avx512Codes {
 public:
  template <class Tile>
  explicit Avx512Codes(const Tile& tile)
      : is_signed_(tile.lowest < 0),
        zero_(_mm512_set1_epi16(static_cast<int16_t>(tile.zero))),
        low_(_mm512_set1_ps(static_cast<float>(tile.lowest - tile.zero))),
        high_(_mm512_set1_ps(static_cast<float>(tile.highest - tile.zero))) {}

  // 32 channels of two pixels.
  template <bool Small>
  [[gnu::always_inline]] __m512i two_pixels(const __m512i (&first)[2], const __m512i (&second)[2],
                                            const __m512 (&scales)[2]) const {
    const __m512i a = halves<Small>(first, scales), b = halves<Small>(second, scales);
    const __m512i bytes = is_signed_ ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    return _mm512_permutexvar_epi32(transposed_order(), bytes);
  }

  // 64 channels of one pixel: four of each 16, then the next four.
  template <bool Small>
  [[gnu::always_inline]] __m512i interleaved(const __m512i (&sums)[4], const __m512 (&scales)[4]) const {
    const __m512i a = halves<Small>({sums[0], sums[1]}, {scales[0], scales[1]});
    const __m512i b = halves<Small>({sums[2], sums[3]}, {scales[2], scales[3]});
    return is_signed_ ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  }

  // 16 channels of one pixel.
  template <bool Small>
  [[gnu::always_inline]] __m128i one_pixel(__m512i sums, __m512 scales) const {
    const __m512i low = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(zero_));
    return _mm512_cvtepi32_epi8(limited(_mm512_add_epi32(whole<Small>(sums, scales), low)));
  }

 private:
  template <bool Small>
  [[gnu::always_inline]] __m512i whole(__m512i sums, __m512 scales) const {
    __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
    // The lowest where a scale is NaN.
    if constexpr (!Small) scaled = _mm512_min_ps(_mm512_max_ps(scaled, low_), high_);
    return _mm512_cvtps_epi32(scaled);
  }

  // In the order of the pack instructions.
  template <bool Small>
  [[gnu::always_inline]] __m512i halves(const __m512i (&sums)[2], const __m512 (&scales)[2]) const {
    return _mm512_adds_epi16(_mm512_packs_epi32(whole<Small>(sums[0], scales[0]), whole<Small>(sums[1], scales[1])),
                             zero_);
  }

  [[gnu::always_inline]] __m512i limited(__m512i codes) const {
    const __m512i low = _mm512_set1_epi32(is_signed_ ? -128 : 0);
    return _mm512_min_epi32(_mm512_max_epi32(codes, low), _mm512_add_epi32(low, _mm512_set1_epi32(255)));
  }

  bool is_signed_;
  __m512i zero_;
  __m512 low_, high_;
};

// Calls body<Small>.
template <class Tile, class Body>
[[gnu::always_inline]] inline void for_size(const Tile& tile, Body body) {
  tile.range != CodeRange::any ? body.template operator()<true>() : body.template operator()<false>();
}

// Stores 32 channels of some pixels: sums(i, half) are 16 of those of pixel i.
template <int Rows, class Sums>
[[gnu::always_inline]] inline void store_codes(const NhwcTile& tile, const Avx512Codes& codes, int64_t column,
                                               Sums sums) {
  const __mmask32 some = first_of_32(tile.stored - column);
  const __m512 scales[2] = {_mm512_loadu_ps(tile.scales + column), _mm512_loadu_ps(tile.scales + column + 16)};
  for_size(tile, [&]<bool Small>() {
    uint8_t* to = tile.y + column;
#pragma GCC unroll 12
    for (int i = 0; i < Rows; i += 2, to += 2 * tile.pixel) {
      const int next = i + 1 < Rows ? i + 1 : i;
      const __m512i first[2] = {sums(i, 0), sums(i, 1)}, second[2] = {sums(next, 0), sums(next, 1)};
      const __m512i bytes = codes.template two_pixels<Small>(first, second, scales);
      _mm256_mask_storeu_epi8(to, some, _mm512_castsi512_si256(bytes));
      if (next > i) _mm256_mask_storeu_epi8(to + tile.pixel, some, _mm512_extracti64x4_epi64(bytes, 1));
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
