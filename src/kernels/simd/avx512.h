#pragma once

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Avx512 {
  static constexpr Isa isa = Isa::avx512;
  static constexpr int width = 16;
  static constexpr VectorsAtOnce at_once{};
  using F [[gnu::vector_size(64)]] = float;
  using I [[gnu::vector_size(64)]] = int32_t;
  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
  static F load_part(const float* p, int64_t count) { return (F)_mm512_maskz_loadu_ps(first(count), p); }
  static void store_part(float* p, F v, int64_t count) { _mm512_mask_storeu_ps(p, first(count), (__m512)v); }
  static F fma(F a, F b, F c) { return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
  using D [[gnu::vector_size(64)]] = double;
  using L [[gnu::vector_size(64)]] = int64_t;
  using H [[gnu::vector_size(32)]] = float;  // as many as D has
  static D fma(D a, D b, D c) { return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
  static F sqrt(F x) { return (F)_mm512_sqrt_ps((__m512)x); }
  // The second where either is NaN.
  static F max(F a, F b) { return (F)_mm512_max_ps((__m512)a, (__m512)b); }
  static F min(F a, F b) { return (F)_mm512_min_ps((__m512)a, (__m512)b); }
  // In the order of Simd::sum.
  static float sum(F v) { return _mm512_reduce_add_ps((__m512)v); }
  static float highest(F v) {
    const auto lanes = (__m512)v;
    return _mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q) ? __builtin_nanf("") : _mm512_reduce_max_ps(lanes);
  }
  // x * 2^n for a whole n, rounded once.
  static F scale(F x, F n) { return (F)_mm512_scalef_ps((__m512)x, (__m512)n); }
  static F load_halves(const uint16_t* p) {
    return (F)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_halves(uint16_t* p, F v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace
}  // namespace tenon::kernels
