#include <immintrin.h>

#include "kernels/amx_tiles.h"
#include "kernels/gemm_bf16/pack_kernel.h"
#include "kernels/gemm_bf16/tile.h"

namespace tenon::kernels {
namespace {

// Registers 0 to 3 hold sums, 4 and 5 numbers of the left side, 6 and 7 those of the right.
constexpr int rows = 32, columns = 32, half = 16, row_bytes = 64;

struct Convert {
  static constexpr int group_size = 32;
  static void group(const float* from, uint16_t* to) {
    const __m512bh numbers = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + half), _mm512_loadu_ps(from));
    __builtin_memcpy(to, &numbers, sizeof numbers);
  }
};

void all_rows(int64_t k, const uint16_t* a, const uint16_t* b, float* tile) {
  constexpr int right_stride = 2 * row_bytes, right_step = half * right_stride / 2,
                left_step = rows * Convert::group_size;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t p = 0; p < k; p += Convert::group_size, a += left_step, b += right_step) {
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(6, b, right_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + row_bytes / 2, right_stride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + left_step / 2, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int stride = columns * 4;
  _tile_stored(0, tile, stride);
  _tile_stored(1, tile + half, stride);
  _tile_stored(2, tile + half * columns, stride);
  _tile_stored(3, tile + half * columns + half, stride);
}

void half_of_rows(int64_t k, const uint16_t* a, const uint16_t* b, float* tile) {
  constexpr int right_stride = 2 * row_bytes, right_step = half * right_stride / 2,
                left_step = rows * Convert::group_size;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t p = 0; p < k; p += Convert::group_size, a += left_step, b += right_step) {
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(6, b, right_stride);
    _tile_loadd(7, b + row_bytes / 2, right_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  constexpr int stride = columns * 4;
  _tile_stored(0, tile, stride);
  _tile_stored(1, tile + half, stride);
}

}  // namespace

constexpr Bf16Kernels bf16_kernels_amx = {
    "amx",     rows,     columns, 2, Convert::group_size, all_rows, half_of_rows, pack_bf16_rows<Convert, rows>,
    enter_amx, leave_amx};

}  // namespace tenon::kernels
