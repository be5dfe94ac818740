#include <immintrin.h>

#include "kernels/amx_tiles.h"
#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

// Registers 0 and 1 hold sums, 2 codes of the left side, 3 and 4 those of the right.
constexpr int rows = 16, columns = 32, row_bytes = 64;

void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  constexpr int groups_per_step = row_bytes / 4, right_stride = 4 * columns;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t p = 0; p < groups; p += groups_per_step) {
    _tile_loadd(2, a, row_bytes);
    _tile_loadd(3, b, right_stride);
    _tile_loadd(4, b + row_bytes, right_stride);
    _tile_dpbssd(0, 2, 3);
    _tile_dpbssd(1, 2, 4);
    a += rows * row_bytes;
    b += groups_per_step * right_stride;
  }
  _tile_stored(0, tile, columns * 4);
  _tile_stored(1, tile + columns / 2, columns * 4);
}

}  // namespace

constexpr Int8Kernels int8_kernels_amx = {"amx",    rows,     columns,  4,       row_bytes, false,     rows,
                                          multiply, multiply, multiply, nullptr, nullptr,   enter_amx, leave_amx};

}  // namespace tenon::kernels
