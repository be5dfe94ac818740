#include "kernels/simd/portable.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Portable;
  static constexpr int rows = 4;
  static constexpr int vectors = 2;

  template <int R, class F>
  static void multiply_add(F (&acc)[R][vectors], const float* a, const F (&row)[vectors]) {
    multiply_add_broadcast<Arch>(acc, a, row);
  }
};

}  // namespace

constexpr GemmKernels gemm_kernels_portable = GemmTileKernels<Tile>::table();

}  // namespace tenon::kernels
