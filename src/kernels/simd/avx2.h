#pragma once

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Avx2 {
  static constexpr Isa isa = Isa::avx2;
  static constexpr int width = 8;
  using F [[gnu::vector_size(32)]] = float;
  using I [[gnu::vector_size(32)]] = int32_t;
  static F fma(F a, F b, F c) { return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
  static F sqrt(F x) { return (F)_mm256_sqrt_ps((__m256)x); }
};

}  // namespace
}  // namespace tenon::kernels
