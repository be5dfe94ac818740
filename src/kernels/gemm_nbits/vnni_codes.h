// Codes of few bits in the registers of AVX-512, and dot products with them.
#pragma once

#include "kernels/simd/avx512.h"

#include "kernels/gemm_nbits/tile_kernel.h"

namespace tenon::kernels {
namespace {

// Panels of as many vectors: with two, digits in a register are multiplied twice, and sums of 4 rows fill the
// registers.
template <int Vectors>
struct NbitsVnni : Avx512 {
  static constexpr int vectors = Vectors;
  using Codes = __m512i;

  template <int bits>
  static void codes(const uint8_t* from, int group, Codes (&to)[vectors]) {
    const __m512i lowest = _mm512_set1_epi8(static_cast<char>((1 << bits) - 1));
    if constexpr (bits == 8) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) to[v] = _mm512_loadu_si512(from + 64 * v);
    } else if constexpr (vectors == 2) {
      const __m512i own = _mm512_srli_epi16(_mm512_loadu_si512(from), static_cast<unsigned>(4 * group));
      to[0] = _mm512_and_si512(own, lowest);
      to[1] = _mm512_and_si512(_mm512_srli_epi16(own, bits), lowest);
    } else {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                    own = _mm256_srli_epi16(bytes, 4 * group);
      const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(own), _mm256_srli_epi16(own, bits), 1);
      to[0] = _mm512_and_si512(both, lowest);
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
