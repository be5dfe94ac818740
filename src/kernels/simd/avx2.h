#pragma once

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Avx2 {
  static constexpr Isa isa = Isa::avx2;
  static constexpr int width = 8;
  typedef float F __attribute__((vector_size(32)));
  typedef int32_t I __attribute__((vector_size(32)));
  static F fma(F a, F b, F c) { return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
};

}  // namespace
}  // namespace tenon::kernels
