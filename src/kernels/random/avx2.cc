#include "kernels/simd/avx2.h"

#include "kernels/random/philox_lanes.h"

namespace tenon::kernels {
namespace {

struct PhiloxAvx2 : Avx2 {
  using U [[gnu::vector_size(32)]] = uint64_t;
  static U multiply_low_halves(U a, U b) { return (U)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
  static U even_lanes_in_pairs(U a, U b) { return (U)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b); }
  static U odd_lanes_in_pairs(U a, U b) { return (U)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b); }
};

}  // namespace

constexpr PhiloxKernels philox_kernels_avx2 = PhiloxLanes<PhiloxAvx2>::table();

}  // namespace tenon::kernels
