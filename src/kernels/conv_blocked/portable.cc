#include "kernels/simd/portable.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Portable;
  static constexpr int vectors = 2;
  static constexpr int pixels = 4;
  static constexpr int dw_pixels = 4;

  template <int P, int Lanes, class F>
  static void multiply_add(F (&acc)[P][vectors], const float* const (&x)[P], int64_t at, const float* w) {
    multiply_add_broadcast_pixels<Arch, P, Lanes>(acc, x, at, w);
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_portable = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
