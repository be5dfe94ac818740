#include <arm_neon.h>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 8, column_pairs = 4;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// One instruction multiplies two rows with two columns, eight steps deep: a register has two sums of each row.
template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  constexpr int row_pairs = Rows / 2;
  int32x4_t acc[row_pairs][column_pairs];
#pragma GCC unroll 4
  for (int j = 0; j < column_pairs; ++j) {
    const int32x2_t pair = vld1_s32(of_columns + 2 * j);
#pragma GCC unroll 4
    for (int i = 0; i < row_pairs; ++i)
      acc[i][j] = vcombine_s32(vadd_s32(pair, vld1_dup_s32(of_rows + 2 * i)),
                               vadd_s32(pair, vld1_dup_s32(of_rows + 2 * i + 1)));
  }
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
    int32_t *even = c + 2 * i * ldc, *odd = even + ldc;
#pragma GCC unroll 2
    for (int j = 0; j < column_pairs; j += 2) {
      const int64x2_t first = vreinterpretq_s64_s32(acc[i][j]), second = vreinterpretq_s64_s32(acc[i][j + 1]);
      vst1q_s32(even + 2 * j, vreinterpretq_s32_s64(vtrn1q_s64(first, second)));
      vst1q_s32(odd + 2 * j, vreinterpretq_s32_s64(vtrn2q_s64(first, second)));
    }
  }
}

// The second row is one that nobody asked for.
void multiply_row(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
                  int32_t* c, int64_t) {
  const int32_t both[2] = {of_rows[0], 0};
  int32_t sums[2 * columns];
  multiply<2>(groups, a, b, both, of_columns, sums, columns);
  vst1q_s32(c, vld1q_s32(sums));
  vst1q_s32(c + 4, vld1q_s32(sums + 4));
}

constexpr int sums_at_once = 16;

int32_t multiply_registers(int64_t steps, const uint8_t* codes) {
  int32x4_t acc[sums_at_once];
#pragma GCC unroll 16
  for (int i = 0; i < sums_at_once; ++i) acc[i] = vdupq_n_s32(i);  // or one would do for all
  const int8x16_t a = load(codes), b = load(codes + 16);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < sums_at_once; ++i) acc[i] = vmmlaq_s32(acc[i], a, b);
  }
  int32x4_t sum = acc[0];
#pragma GCC unroll 16
  for (int i = 1; i < sums_at_once; ++i) sum = vaddq_s32(sum, acc[i]);
  return vaddvq_s32(sum);
}

}  // namespace

constexpr Int8Kernels int8_kernels_neon_i8mm = {"neon_i8mm",
                                                rows,
                                                columns,
                                                8,
                                                8,
                                                false,
                                                rows,
                                                multiply<rows>,
                                                2,
                                                multiply<2>,
                                                multiply_row,
                                                64 * sums_at_once,
                                                multiply_registers};

}  // namespace tenon::kernels
