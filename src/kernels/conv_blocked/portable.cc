#include "kernels/simd/portable.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Portable;
  static constexpr int vectors = 2;
  static constexpr int pixels = 4;
  static constexpr int two_pixels = 3;
  static constexpr int dw_pixels = 4;

  template <int P, int Lanes, class F, int V>
  static void multiply_add(F (&acc)[P][V], const float* const (&x)[P], int64_t at, const float* w,
                           int64_t weight_step) {
    BroadcastPixels<Arch, vectors>::multiply_add<P, Lanes>(acc, x, at, w, weight_step);
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_portable = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
