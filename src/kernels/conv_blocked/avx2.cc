#include "kernels/simd/avx2.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile : BroadcastPixels<Avx2, 1> {
  static constexpr int vectors = 1;
  static constexpr int pixels = 12;
  static constexpr int two_pixels = 6;
  static constexpr bool orders_statements = false;
  static constexpr int dw_pixels = 8;
  static constexpr int registers = 16, row_lines = 1;
  static constexpr int64_t least_plain_depth = 0;
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_avx2 = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
