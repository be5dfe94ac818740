#include "kernels/simd/avx512.h"

#include <type_traits>

#include "kernels/quantize/codes_kernel.h"
#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {
namespace {

struct NarrowingAvx512 : Avx512 {
  static F lesser_number(F a, F b) { return (F)_mm512_min_ps((__m512)a, (__m512)b); }
  static F greater_number(F a, F b) { return (F)_mm512_max_ps((__m512)a, (__m512)b); }

  static void narrow(const I (&from)[4], uint8_t* to) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * k), _mm512_cvtepi32_epi8((__m512i)from[k]));
  }
  static void narrow(const I (&from)[4], int8_t* to) { narrow(from, reinterpret_cast<uint8_t*>(to)); }
  static void narrow(const I (&from)[4], uint16_t* to) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16 * k), _mm512_cvtepi32_epi16((__m512i)from[k]));
  }
  static void narrow(const I (&from)[4], int16_t* to) { narrow(from, reinterpret_cast<uint16_t*>(to)); }

  // What requantizing scaled values makes of them: instructions that saturate need no lower limit, and take NaN for the
  // lowest number. The second half of the codes goes to another place.
  template <class T>
  static void round_codes(const F (&values)[4], F high, T zero, T* to, T* second) {
    const __m512i a = rounded(values[0], values[1], high, zero), b = rounded(values[2], values[3], high, zero);
    const __m512i codes = std::is_signed_v<T> ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    // Packing takes four numbers of each vector in turn.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i in_order = _mm512_permutexvar_epi32(order, codes);
    if (second == to + 32) {
      _mm512_storeu_si512(to, in_order);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(in_order));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(in_order, 1));
    }
  }
  static __m512i rounded(F a, F b, F high, int zero) {
    const __m512i first = _mm512_cvtps_epi32(_mm512_min_ps((__m512)high, (__m512)a));
    const __m512i second = _mm512_cvtps_epi32(_mm512_min_ps((__m512)high, (__m512)b));
    return _mm512_adds_epi16(_mm512_packs_epi32(first, second), _mm512_set1_epi16(static_cast<int16_t>(zero)));
  }

  static void centered(const uint8_t* from, int32_t zero, F (&to)[4]) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      to[k] = less(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * k))), zero);
  }
  static void centered(const int8_t* from, int32_t zero, F (&to)[4]) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      to[k] = less(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * k))), zero);
  }
  static F less(__m512i codes, int32_t zero) {
    return (F)_mm512_cvtepi32_ps(_mm512_sub_epi32(codes, _mm512_set1_epi32(zero)));
  }

  // Sums of 64 codes, as codes_kernel.h says.
  template <class T>
  [[gnu::always_inline]] static void add(const T* a, const T* b, T* y, const CodeArithmetic& by) {
    const Unsigned<T> as_unsigned;
    const Large first(_mm512_xor_si512(_mm512_loadu_si512(a), as_unsigned.flip), as_unsigned.zero(by.a_zero));
    const Large second(_mm512_xor_si512(_mm512_loadu_si512(b), as_unsigned.flip), as_unsigned.zero(by.b_zero));
    const __m512 a_factor = _mm512_set1_ps(by.a_factor), b_factor = _mm512_set1_ps(by.b_factor);
    const __m512 high = _mm512_set1_ps(static_cast<float>(255 - as_unsigned.zero(by.zero)));
    // Instructions that saturate need no lower limit.
    const auto whole = [&](__m512 x, __m512 z) {
      const __m512 sum = _mm512_add_ps(_mm512_mul_ps(x, a_factor), _mm512_mul_ps(z, b_factor));
      return _mm512_cvtps_epi32(_mm512_min_ps(high, sum));
    };
    const __m512i zero = _mm512_set1_epi16(static_cast<int16_t>(as_unsigned.zero(by.zero)));
    const __m512i low = _mm512_packs_epi32(whole(first.a, second.a), whole(first.b, second.b));
    const __m512i rest = _mm512_packs_epi32(whole(first.c, second.c), whole(first.d, second.d));
    const __m512i codes = _mm512_packus_epi16(_mm512_adds_epi16(low, zero), _mm512_adds_epi16(rest, zero));
    _mm512_storeu_si512(y, _mm512_xor_si512(codes, as_unsigned.flip));
  }

  // Signed codes are unsigned ones with another zero point.
  template <class T>
  struct Unsigned {
    __m512i flip = _mm512_set1_epi8(std::is_signed_v<T> ? -128 : 0);
    static int32_t zero(int32_t zero) { return std::is_signed_v<T> ? zero + 128 : zero; }
  };

  // Codes less their zero point, in the order that packing undoes: interleaved with the upper bytes of a number so
  // large that they are its lowest bits.
  struct Large {
    __m512 a, b, c, d;

    [[gnu::always_inline]] Large(__m512i codes, int32_t zero) {
      const __m512i none = _mm512_setzero_si512(), upper = _mm512_set1_epi16(0x4b40);
      const __m512 subtracted = _mm512_set1_ps(12582912.0f + static_cast<float>(zero));
      const auto less = [&](__m512i whole) { return _mm512_sub_ps(_mm512_castsi512_ps(whole), subtracted); };
      const __m512i low = _mm512_unpacklo_epi8(codes, none), high = _mm512_unpackhi_epi8(codes, none);
      a = less(_mm512_unpacklo_epi16(low, upper));
      b = less(_mm512_unpackhi_epi16(low, upper));
      c = less(_mm512_unpacklo_epi16(high, upper));
      d = less(_mm512_unpackhi_epi16(high, upper));
    }
  };

  // Sixteen entries at a time: an index that is not among them has its highest bit set, for which zero is taken.
  static void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
    __m512i parts[16];
    for (int k = 0; k < 16; ++k)
      parts[k] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
    const auto some = [&](const uint8_t* from, uint8_t* to) {
      const __m512i index = _mm512_loadu_si512(from);
      __m512i found = _mm512_setzero_si512();
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) {
        const __m512i own = _mm512_xor_si512(index, _mm512_set1_epi8(static_cast<char>(16 * k)));
        found = _mm512_or_si512(found, _mm512_shuffle_epi8(parts[k], _mm512_adds_epu8(own, _mm512_set1_epi8(0x70))));
      }
      _mm512_storeu_si512(to, found);
    };
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) some(x + i, y + i);
    if (i == n) return;
    uint8_t last[64] = {};
    std::copy_n(x + i, n - i, last);
    some(last, last);
    std::copy_n(last, n - i, y + i);
  }
};

}  // namespace

constexpr QuantizeKernels quantize_kernels_avx512 = QuantizeArrays<NarrowingAvx512>::table();
constexpr RequantizeKernels requantize_kernels_avx512 = RequantizeArrays<NarrowingAvx512>::requantize_table();
constexpr CodeKernels code_kernels_avx512 = CodeArrays<NarrowingAvx512>::code_table();

}  // namespace tenon::kernels
