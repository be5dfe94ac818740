#include <immintrin.h>

#include <cstring>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 16, vectors = 2;

// In 16 bits, because the instruction that multiplies bytes saturates.
// The left panel has `Lanes`.
template <int Rows, int Lanes = rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  __m256i acc[Rows][vectors];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
    const __m256i row = _mm256_set1_epi32(of_rows[i]);
    for (int j = 0; j < vectors; ++j)
      acc[i][j] = _mm256_add_epi32(row, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_columns + 8 * j)));
  }
  for (int64_t p = 0; p < groups; ++p, a += 2 * Lanes, b += 2 * columns) {
    __m256i right[vectors];
    for (int j = 0; j < vectors; ++j) {
      right[j] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16 * j)));
    }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      int16_t pair;
      std::memcpy(&pair, a + 2 * i, sizeof pair);
      const __m256i left = _mm256_cvtepi8_epi16(_mm_set1_epi16(pair));
      acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(left, right[0]));
      acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(left, right[1]));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i, c += ldc) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c), acc[i][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + 8), acc[i][1]);
  }
}

constexpr int sums_at_once = 12;

int32_t multiply_registers(int64_t steps, const uint8_t* codes) {
  __m256i acc[sums_at_once];
#pragma GCC unroll 12
  for (int i = 0; i < sums_at_once; ++i) acc[i] = _mm256_set1_epi32(i);  // or one would do for all
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32));
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < sums_at_once; ++i) {
      asm volatile("" : "+x"(b));  // or the product would be one for all
      acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(a, b));
    }
  }
  __m256i sum = acc[0];
#pragma GCC unroll 12
  for (int i = 1; i < sums_at_once; ++i) sum = _mm256_add_epi32(sum, acc[i]);
  return _mm256_extract_epi32(sum, 0);
}

}  // namespace

constexpr Int8Kernels int8_kernels_avx2 = {"avx2",
                                           rows,
                                           columns,
                                           2,
                                           2,
                                           false,
                                           1,
                                           multiply<rows>,
                                           2,
                                           multiply<2>,
                                           multiply<1, 1>,
                                           32 * sums_at_once,
                                           multiply_registers};

}  // namespace tenon::kernels
