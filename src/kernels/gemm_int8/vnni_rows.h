// Right panels of 32 columns: how they are packed, and multiplied by some rows, with AVX-512 VNNI.
// Internal linkage: it belongs to the files of its instruction sets alone.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tenon::kernels {
namespace {

constexpr int vnni_columns = 32, vnni_vectors = 2;

// Some rows times `Panels` right panels, `panel_bytes` apart. The left panel has `Lanes`.
template <int Rows, int Lanes, int Panels>
[[gnu::always_inline]] inline void multiply_panels(int64_t groups, const uint8_t* a, const uint8_t* b,
                                                   int64_t panel_bytes, const int32_t* of_rows,
                                                   const int32_t* of_columns, int32_t* c, int64_t ldc) {
  constexpr int vectors = vnni_vectors * Panels;
  __m512i acc[Rows][vectors];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
    const __m512i row = _mm512_set1_epi32(of_rows[i]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) acc[i][v] = _mm512_add_epi32(row, _mm512_loadu_si512(of_columns + 16 * v));
  }
  for (int64_t p = 0; p < groups; ++p, a += 4 * Lanes, b += 4 * vnni_columns) {
    __m512i right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      right[v] = _mm512_loadu_si512(b + v / vnni_vectors * panel_bytes + v % vnni_vectors * 64);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      int32_t codes;
      std::memcpy(&codes, a + 4 * i, sizeof codes);
      const __m512i left = _mm512_set1_epi32(codes);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) acc[i][v] = _mm512_dpbusd_epi32(acc[i][v], left, right[v]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) _mm512_storeu_si512(c + i * ldc + 16 * v, acc[i][v]);
  }
}

// What Int8Kernels::Multiply says.
template <int Rows, int Lanes>
void multiply_rows(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows,
                   const int32_t* of_columns, int32_t* c, int64_t ldc) {
  multiply_panels<Rows, Lanes, 1>(groups, a, b, 0, of_rows, of_columns, c, ldc);
}

// What Int8Kernels::pack_whole_columns says.
inline void pack_whole_columns(const uint8_t* from, int64_t ld, int64_t groups, uint8_t flip, uint8_t* to) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  for (int64_t g = 0; g < groups; ++g, from += 4 * ld, to += 4 * vnni_columns) {
    __m256i rows[4];
    for (int i = 0; i < 4; ++i)
      rows[i] = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * ld)), flips);
    const __m256i low01 = _mm256_unpacklo_epi8(rows[0], rows[1]), low23 = _mm256_unpacklo_epi8(rows[2], rows[3]);
    const __m256i high01 = _mm256_unpackhi_epi8(rows[0], rows[1]), high23 = _mm256_unpackhi_epi8(rows[2], rows[3]);
    // Four columns of the first half, and four of the second.
    const __m256i columns[4] = {_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
                                _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
    for (int i = 0; i < 4; i += 2) {
      const __m256i first = _mm256_permute2x128_si256(columns[i], columns[i + 1], 0x20);
      const __m256i second = _mm256_permute2x128_si256(columns[i], columns[i + 1], 0x31);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16 * i), first);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 64 + 16 * i), second);
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
