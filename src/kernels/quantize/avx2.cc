#include "kernels/simd/avx2.h"

#include "kernels/quantize/codes_kernel.h"
#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {
namespace {

struct NarrowingAvx2 : Avx2 {
  static F lesser_number(F a, F b) { return (F)_mm256_min_ps((__m256)a, (__m256)b); }
  static F greater_number(F a, F b) { return (F)_mm256_max_ps((__m256)a, (__m256)b); }

  // The low bytes or halves of 8 numbers each, in order.
  static __m128i halves(I from) {
    const __m256i low =
        _mm256_shuffle_epi8((__m256i)from, _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0,
                                                            1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(low, 0b10'00));
  }
  static int64_t bytes(I from) {
    const __m256i low = _mm256_shuffle_epi8((__m256i)from, _mm256_set1_epi32(0x0c080400));
    const __m256i both = _mm256_permutevar8x32_epi32(low, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    return _mm_cvtsi128_si64(_mm256_castsi256_si128(both));
  }

  static void narrow(const I (&from)[4], uint8_t* to) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const int64_t eight = bytes(from[k]);
      std::memcpy(to + 8 * k, &eight, sizeof eight);
    }
  }
  static void narrow(const I (&from)[4], int8_t* to) { narrow(from, reinterpret_cast<uint8_t*>(to)); }
  static void narrow(const I (&from)[4], uint16_t* to) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 * k), halves(from[k]));
  }
  static void narrow(const I (&from)[4], int16_t* to) { narrow(from, reinterpret_cast<uint16_t*>(to)); }

  static void centered(const uint8_t* from, int32_t zero, F (&to)[4]) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      to[k] = less(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * k))), zero);
  }
  static void centered(const int8_t* from, int32_t zero, F (&to)[4]) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      to[k] = less(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * k))), zero);
  }
  static F less(__m256i codes, int32_t zero) {
    return (F)_mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(zero)));
  }

  // Sixteen entries at a time: an index that is not among them has its highest bit set, for which zero is taken.
  static void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
    __m256i parts[16];
    for (int k = 0; k < 16; ++k)
      parts[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
    const auto some = [&](const uint8_t* from, uint8_t* to) {
      const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) {
        const __m256i own = _mm256_xor_si256(index, _mm256_set1_epi8(static_cast<char>(16 * k)));
        found = _mm256_or_si256(found, _mm256_shuffle_epi8(parts[k], _mm256_adds_epu8(own, _mm256_set1_epi8(0x70))));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), found);
    };
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) some(x + i, y + i);
    if (i == n) return;
    uint8_t last[32] = {};
    std::copy_n(x + i, n - i, last);
    some(last, last);
    std::copy_n(last, n - i, y + i);
  }
};

}  // namespace

constexpr QuantizeKernels quantize_kernels_avx2 = QuantizeArrays<NarrowingAvx2>::table();
constexpr RequantizeKernels requantize_kernels_avx2 = RequantizeArrays<NarrowingAvx2>::requantize_table();
constexpr CodeKernels code_kernels_avx2 = CodeArrays<NarrowingAvx2>::code_table();

}  // namespace tenon::kernels
