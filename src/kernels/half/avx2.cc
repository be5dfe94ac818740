#include <immintrin.h>

#include "kernels/half/array_kernel.h"

namespace tenon::kernels {
namespace {

struct Avx2 {
  static constexpr Isa isa = Isa::avx2;
  static constexpr int width = 8;
  static void to_half(const float* x, uint16_t* y) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
  }
  static void to_float(const uint16_t* x, float* y) {
    _mm256_storeu_ps(y, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
  }
};

}  // namespace

constexpr HalfKernels half_kernels_avx2 = HalfArrays<Avx2>::table();

}  // namespace tenon::kernels
