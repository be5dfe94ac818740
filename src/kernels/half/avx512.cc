#include <immintrin.h>

#include "kernels/half/array_kernel.h"

namespace tenon::kernels {
namespace {

struct Avx512 {
  static constexpr Isa isa = Isa::avx512;
  static constexpr int width = 16;
  static void to_half(const float* x, uint16_t* y) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
  }
  static void to_float(const uint16_t* x, float* y) {
    _mm512_storeu_ps(y, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
  }
};

}  // namespace

constexpr HalfKernels half_kernels_avx512 = HalfArrays<Avx512>::table();

}  // namespace tenon::kernels
