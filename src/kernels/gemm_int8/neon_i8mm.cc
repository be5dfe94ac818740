#include <arm_neon.h>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 8, column_pairs = 4;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// One instruction multiplies two rows with two columns, eight steps deep.
template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  constexpr int row_pairs = Rows / 2;
  int32x4_t acc[row_pairs][column_pairs] = {};
  for (int64_t p = 0; p < groups; ++p, a += 8 * rows, b += 8 * columns) {
    int8x16_t right[column_pairs];
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) right[j] = load(b + 16 * j);
#pragma GCC unroll 4
    for (int i = 0; i < row_pairs; ++i) {
      const int8x16_t left = load(a + 16 * i);
#pragma GCC unroll 4
      for (int j = 0; j < column_pairs; ++j) acc[i][j] = vmmlaq_s32(acc[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < row_pairs; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) {
      vst1_s32(tile + 2 * i * columns + 2 * j, vget_low_s32(acc[i][j]));
      vst1_s32(tile + (2 * i + 1) * columns + 2 * j, vget_high_s32(acc[i][j]));
    }
  }
}

}  // namespace

constexpr Int8Kernels int8_kernels_neon_i8mm = {"neon_i8mm", rows, columns,        8,           8,
                                                false,       rows, multiply<rows>, multiply<2>, multiply<2>};

}  // namespace tenon::kernels
