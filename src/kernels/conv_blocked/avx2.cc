#include "kernels/simd/avx2.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Avx2;
  static constexpr int vectors = 1;
  static constexpr int pixels = 12;
  static constexpr int dw_pixels = 8;

  template <int P, int Lanes, class F>
  static void multiply_add(F (&acc)[P][vectors], const float* const (&x)[P], int64_t at, const float* w) {
    multiply_add_broadcast_pixels<Arch, P, Lanes>(acc, x, at, w);
  }
  template <int P, int Lanes, class F>
  static void multiply_add_even(F (&acc)[P][vectors], const float* x, const float* w, int64_t step) {
    multiply_add_even_pixels<Arch, P, Lanes>(acc, x, w, step);
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_avx2 = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
