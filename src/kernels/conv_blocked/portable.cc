#include "kernels/simd/portable.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile : BroadcastPixels<Portable, 2> {
  static constexpr int vectors = 2;
  static constexpr int pixels = 4;
  static constexpr int two_pixels = 3;
  static constexpr bool orders_statements = false;
  static constexpr int dw_pixels = 4;
  static constexpr int registers = 16, row_lines = 1;
  static constexpr int64_t least_plain_depth = 0;
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_portable = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
