// Some rows times a right panel, by AVX-512 VNNI.
// Internal linkage: it belongs to the files of its instruction sets alone.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tenon::kernels {
namespace {

constexpr int vnni_columns = 32, vnni_vectors = 2;

// What Int8Kernels::Multiply says. The left panel has `Lanes`.
template <int Rows, int Lanes>
void multiply_rows(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows,
                   const int32_t* of_columns, int32_t* c, int64_t ldc) {
  __m512i acc[Rows][vnni_vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const __m512i row = _mm512_set1_epi32(of_rows[i]);
    acc[i][0] = _mm512_add_epi32(row, _mm512_loadu_si512(of_columns));
    acc[i][1] = _mm512_add_epi32(row, _mm512_loadu_si512(of_columns + 16));
  }
  for (int64_t p = 0; p < groups; ++p, a += 4 * Lanes, b += 4 * vnni_columns) {
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

}  // namespace
}  // namespace tenon::kernels
