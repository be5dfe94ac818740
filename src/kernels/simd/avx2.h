#pragma once

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Avx2 {
  static constexpr Isa isa = Isa::avx2;
  static constexpr int width = 8;
  static constexpr VectorsAtOnce at_once{};
  using F [[gnu::vector_size(32)]] = float;
  using I [[gnu::vector_size(32)]] = int32_t;
  static __m256i first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static F load_part(const float* p, int64_t count) { return (F)_mm256_maskload_ps(p, first(count)); }
  static void store_part(float* p, F v, int64_t count) { _mm256_maskstore_ps(p, first(count), (__m256)v); }
  static F fma(F a, F b, F c) { return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
  using D [[gnu::vector_size(32)]] = double;
  using L [[gnu::vector_size(32)]] = int64_t;
  using H [[gnu::vector_size(16)]] = float;  // as many as D has
  static D fma(D a, D b, D c) { return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
  static F sqrt(F x) { return (F)_mm256_sqrt_ps((__m256)x); }
  // The second where either is NaN.
  static F max(F a, F b) { return (F)_mm256_max_ps((__m256)a, (__m256)b); }
  static F min(F a, F b) { return (F)_mm256_min_ps((__m256)a, (__m256)b); }
  // In the order of Simd::sum.
  static float sum(F v) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float highest(F v) {
    if (_mm256_movemask_ps(_mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q))) return __builtin_nanf("");
    __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  static F load_halves(const uint16_t* p) {
    return (F)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store_halves(uint16_t* p, F v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace
}  // namespace tenon::kernels
