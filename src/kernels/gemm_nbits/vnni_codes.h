// Codes of few bits in the registers of AVX-512, and dot products with them.
#pragma once

#include "kernels/simd/avx512.h"

#include "kernels/gemm_nbits/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct NbitsVnni : Avx512 {
  static constexpr int vectors = 1;
  using Codes = __m512i;

  template <int bits>
  static void codes(const uint8_t* from, int group, Codes (&to)[vectors]) {
    if constexpr (bits == 8) {
      to[0] = _mm512_loadu_si512(from);
    } else {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                    own = _mm256_srli_epi16(bytes, 4 * group);
      const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(own), _mm256_srli_epi16(own, bits), 1);
      to[0] = _mm512_and_si512(both, _mm512_set1_epi8((1 << bits) - 1));
    }
  }
  static constexpr int32_t excess(int bits) { return 1 << (bits - 1); }
  static const int8_t* digits(const int8_t* from) { return from; }

  template <int bits, int lane>
  static I dot(I sums, Codes codes, const int8_t* digits) {
    int32_t four;
    std::memcpy(&four, digits + lane * nbits_group, sizeof four);
    return (I)_mm512_dpbusd_epi32((__m512i)sums, codes, _mm512_set1_epi32(four));
  }
};

}  // namespace
}  // namespace tenon::kernels
