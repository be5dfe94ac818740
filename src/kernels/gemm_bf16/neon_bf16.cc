#include <arm_neon.h>

#include "kernels/gemm_bf16/pack_kernel.h"
#include "kernels/gemm_bf16/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 12, column_pairs = columns / 2;

struct Convert {
  static constexpr int group_size = 4;
  static void group(const float* from, uint16_t* to) {
    vst1_bf16(reinterpret_cast<bfloat16_t*>(to), vcvt_bf16_f32(vld1q_f32(from)));
  }
};

inline bfloat16x8_t load(const uint16_t* p) { return vld1q_bf16(reinterpret_cast<const bfloat16_t*>(p)); }

// One instruction multiplies two rows with two columns, four steps deep.
template <int Rows>
void multiply(int64_t k, const uint16_t* a, const uint16_t* b, float* tile) {
  constexpr int row_pairs = Rows / 2;
  float32x4_t acc[row_pairs][column_pairs] = {};
  for (int64_t p = 0; p < k;
       p += Convert::group_size, a += Convert::group_size * rows, b += Convert::group_size * columns) {
    bfloat16x8_t left[row_pairs];
#pragma GCC unroll 4
    for (int i = 0; i < row_pairs; ++i) left[i] = load(a + 8 * i);
#pragma GCC unroll 6
    for (int j = 0; j < column_pairs; ++j) {
      const bfloat16x8_t right = load(b + 8 * j);
#pragma GCC unroll 4
      for (int i = 0; i < row_pairs; ++i) acc[i][j] = vbfmmlaq_f32(acc[i][j], left[i], right);
      // Loads stay where they are: earlier, they would take registers that the sums need.
      asm volatile("" ::: "memory");
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < row_pairs; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < column_pairs; ++j) {
      vst1_f32(tile + 2 * i * columns + 2 * j, vget_low_f32(acc[i][j]));
      vst1_f32(tile + (2 * i + 1) * columns + 2 * j, vget_high_f32(acc[i][j]));
    }
  }
}

}  // namespace

constexpr Bf16Kernels bf16_kernels_neon_bf16 = {"neon_bf16",
                                                rows,
                                                columns,
                                                Convert::group_size,
                                                Convert::group_size,
                                                multiply<rows>,
                                                multiply<rows / 2>,
                                                pack_bf16_rows<Convert, rows>};

}  // namespace tenon::kernels
