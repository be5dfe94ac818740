#include <immintrin.h>

#include <cstring>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 32, vectors = 2;

// Adds products to what `acc` holds and stores it. The left panel has `Lanes`.
template <int Rows, int Lanes>
[[gnu::always_inline]] inline void multiply(int64_t groups, const uint8_t* a, const uint8_t* b,
                                            __m512i (&acc)[Rows][vectors], int32_t* c, int64_t ldc) {
  for (int64_t p = 0; p < groups; ++p, a += 4 * Lanes, b += 4 * columns) {
    const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      int32_t codes;
      std::memcpy(&codes, a + 4 * i, sizeof codes);
      const __m512i left = _mm512_set1_epi32(codes);
      acc[i][0] = _mm512_dpbusd_epi32(acc[i][0], left, b0);
      acc[i][1] = _mm512_dpbusd_epi32(acc[i][1], left, b1);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    _mm512_storeu_si512(c + i * ldc, acc[i][0]);
    _mm512_storeu_si512(c + i * ldc + 16, acc[i][1]);
  }
}

template <int Rows, int Lanes = rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  __m512i acc[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) acc[i][0] = acc[i][1] = _mm512_setzero_si512();
  multiply<Rows, Lanes>(groups, a, b, acc, tile, columns);
}

template <int Rows, int Lanes = rows>
void multiply_into(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows,
                   const int32_t* of_columns, int32_t* c, int64_t ldc) {
  __m512i acc[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const __m512i row = _mm512_set1_epi32(of_rows[i]);
    acc[i][0] = _mm512_add_epi32(row, _mm512_loadu_si512(of_columns));
    acc[i][1] = _mm512_add_epi32(row, _mm512_loadu_si512(of_columns + 16));
  }
  multiply<Rows, Lanes>(groups, a, b, acc, c, ldc);
}

}  // namespace

constexpr Int8Kernels int8_kernels_avx512_vnni = {
    "avx512_vnni",      rows, columns, 4, 4, true, 1, multiply<rows>, multiply<2>, multiply<1, 1>, multiply_into<rows>,
    multiply_into<1, 1>};

}  // namespace tenon::kernels
