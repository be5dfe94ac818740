#include "kernels/simd/avx2.h"

#include "kernels/gemm_nbits/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct NbitsAvx2 : Avx2 {
  static constexpr int vectors = 1;
  using Codes = __m256i;

  template <int bits>
  static void codes(const uint8_t* from, int group, Codes (&to)[vectors]) {
    if constexpr (bits == 8) {
      to[0] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    } else {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)),
                    own = _mm_srli_epi16(bytes, 4 * group);
      const __m256i both = _mm256_set_m128i(_mm_srli_epi16(own, bits), own);
      to[0] = _mm256_and_si256(both, _mm256_set1_epi8((1 << bits) - 1));
    }
  }
  static constexpr int32_t excess(int bits) { return 1 << (bits - 1); }
  static const int8_t* digits(const int8_t* from) { return from; }

  // Sums of two products with codes of 4 bits fit 16 bits. Those of 8 bits are two of 4.
  template <int bits, int lane>
  static I dot(I sums, Codes codes, const int8_t* digits) {
    int32_t four;
    std::memcpy(&four, digits + lane * nbits_group, sizeof four);
    const __m256i left = _mm256_set1_epi32(four);
    const auto add = [&](__m256i nibbles, int16_t factor) {
      sums += (I)_mm256_madd_epi16(_mm256_maddubs_epi16(nibbles, left), _mm256_set1_epi16(factor));
    };
    if constexpr (bits == 8) {
      const __m256i fifteen = _mm256_set1_epi8(15);
      add(_mm256_and_si256(codes, fifteen), 1);
      add(_mm256_and_si256(_mm256_srli_epi16(codes, 4), fifteen), 16);
    } else {
      add(codes, 1);
    }
    return sums;
  }
};

}  // namespace

constexpr NbitsKernels nbits_kernels_avx2 = NbitsTiles<NbitsAvx2>::table("avx2");

}  // namespace tenon::kernels
