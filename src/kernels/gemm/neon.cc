#include "kernels/simd/neon.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int rows = 8;
  static constexpr int vectors = 3;

  // Broadcasts from register lanes, which costs no load slot.
  template <int Lane, class F>
  static void multiply_add_lane(F (&acc)[vectors], float32x4_t a, const F (&row)[vectors]) {
#pragma GCC unroll 3
    for (int j = 0; j < vectors; ++j) {
      acc[j] = (F)vfmaq_laneq_f32((float32x4_t)acc[j], (float32x4_t)row[j], a, Lane);
    }
  }

  template <int R, class F>
  static void multiply_add(F (&acc)[R][vectors], const float* a, const F (&row)[vectors]) {
    const float32x4_t low = vld1q_f32(a);
    multiply_add_lane<0>(acc[0], low, row);
    if constexpr (R > 1) multiply_add_lane<1>(acc[1], low, row);
    if constexpr (R > 2) {
      multiply_add_lane<2>(acc[2], low, row);
      multiply_add_lane<3>(acc[3], low, row);
    }
    if constexpr (R > 4) {
      const float32x4_t high = vld1q_f32(a + 4);
      multiply_add_lane<0>(acc[4], high, row);
      multiply_add_lane<1>(acc[5], high, row);
      multiply_add_lane<2>(acc[6], high, row);
      multiply_add_lane<3>(acc[7], high, row);
    }
  }
};

}  // namespace

constexpr GemmKernels gemm_kernels_neon = GemmTileKernels<Tile>::table();

}  // namespace tenon::kernels
