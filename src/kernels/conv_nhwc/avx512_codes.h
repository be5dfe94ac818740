// What sums become, in AVX-512's registers.
// Internal linkage: it belongs to the files of its instruction set alone.
#pragma once

#include <immintrin.h>

#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

// Sums of 16 channels that are scaled, rounded and limited.
class Avx512Codes {
 public:
  template <class Tile>
  explicit Avx512Codes(const Tile& tile)
      : shift_(_mm512_set1_epi32(tile.small ? nhwc_shift_bits : 0)),
        zero_(_mm512_set1_epi32(tile.zero)),
        low_(_mm512_set1_ps(static_cast<float>(tile.lowest - tile.zero))),
        high_(_mm512_set1_ps(static_cast<float>(tile.highest - tile.zero))) {}

  [[gnu::always_inline]] __m128i operator()(__m512i sums, __m512 scales) const {
    const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(sums, shift_)), scales);
    // The lowest where a scale is NaN.
    const __m512 limited = _mm512_min_ps(_mm512_max_ps(scaled, low_), high_);
    return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(limited), zero_));
  }

 private:
  __m512i shift_, zero_;
  __m512 low_, high_;
};

// The first `count` of 16 bytes.
inline __mmask16 first_bytes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
}

}  // namespace
}  // namespace tenon::kernels
