#pragma once

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {
namespace {

struct Avx512 {
  static constexpr Isa isa = Isa::avx512;
  static constexpr int width = 16;
  typedef float F __attribute__((vector_size(64)));
  typedef int32_t I __attribute__((vector_size(64)));
  static F fma(F a, F b, F c) { return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
};

}  // namespace
}  // namespace tenon::kernels
