#include <immintrin.h>

#include <cstring>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 16, vectors = 2;

// In 16 bits, because the instruction that multiplies bytes saturates.
// The left panel has `Lanes`.
template <int Rows, int Lanes = rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  __m256i acc[Rows][vectors];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
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
  for (int i = 0; i < Rows; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(tile + i * columns), acc[i][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(tile + i * columns + 8), acc[i][1]);
  }
}

}  // namespace

constexpr Int8Kernels int8_kernels_avx2 = {"avx2", rows, columns,        2,           2,
                                           false,  1,    multiply<rows>, multiply<2>, multiply<1, 1>};

}  // namespace tenon::kernels
