#include "kernels/simd/avx512.h"

#include "kernels/random/philox_lanes.h"

namespace tenon::kernels {
namespace {

struct PhiloxAvx512 : Avx512 {
  using U [[gnu::vector_size(64)]] = uint64_t;
  static U multiply_low_halves(U a, U b) { return (U)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
  static U even_lanes_in_pairs(U a, U b) { return (U)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b); }
  static U odd_lanes_in_pairs(U a, U b) { return (U)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b); }
};

}  // namespace

constexpr PhiloxKernels philox_kernels_avx512 = PhiloxLanes<PhiloxAvx512>::table();

}  // namespace tenon::kernels
