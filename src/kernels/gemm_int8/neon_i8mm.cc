#include <arm_neon.h>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 12, columns = 8, column_pairs = 4;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// These statements stay in their order, and what they change in its registers: gcc would move it to others.
[[gnu::always_inline]] inline void load_two(int8x16_t& first, int8x16_t& second, const uint8_t* p, int at) {
  asm volatile("ldp %q0, %q1, %2" : "=w"(first), "=w"(second) : "Ump"(*reinterpret_cast<const int8x16_t*>(p + at)));
}
[[gnu::always_inline]] inline void add_products(int32x4_t& sum, int8x16_t a, int8x16_t b) {
  asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
}

// Loads have their places in their instructions: additions would take time too.
template <int RowPairs>
[[gnu::always_inline]] inline void multiply_group(int32x4_t (&acc)[RowPairs][column_pairs], const uint8_t* a,
                                                  const uint8_t* b) {
  int8x16_t right[column_pairs], left[2];
  load_two(right[0], right[1], b, 0);
  load_two(right[2], right[3], b, 32);
#pragma GCC unroll 6
  for (int i = 0; i < RowPairs; ++i) {
    if (i % 2 == 0) load_two(left[0], left[1], a, 16 * i);
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) add_products(acc[i][j], left[i % 2], right[j]);
  }
}

// One instruction multiplies two rows with two columns, eight steps deep: a register has two sums of each row.
template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  constexpr int row_pairs = Rows / 2;
  int32x4_t acc[row_pairs][column_pairs], of_pairs[column_pairs];
#pragma GCC unroll 4
  for (int j = 0; j < column_pairs; ++j)
    of_pairs[j] = vreinterpretq_s32_s64(vld1q_dup_s64(reinterpret_cast<const int64_t*>(of_columns + 2 * j)));
#pragma GCC unroll 6
  for (int i = 0; i < row_pairs; ++i) {
    const int32x2_t pair = vld1_s32(of_rows + 2 * i);
    const int32x4_t twice = vzip1q_s32(vcombine_s32(pair, pair), vcombine_s32(pair, pair));
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) acc[i][j] = vaddq_s32(of_pairs[j], twice);
  }
  const uint8_t* const end = b + groups * 8 * columns;
  for (; b != end; a += 8 * rows, b += 8 * columns) multiply_group(acc, a, b);
#pragma GCC unroll 6
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

// A row alone is multiplied twice, as both rows of the instruction. Groups that follow each other add to sums that do
// not wait for each other.
void multiply_row(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
                  int32_t* c, int64_t) {
  constexpr int at_once = 4;
  int32x4_t acc[at_once][column_pairs] = {};
  const auto add_group = [&](int32x4_t(&sums)[column_pairs], int64_t group) {
    const int8x16_t row = vreinterpretq_s8_u64(vld1q_dup_u64(reinterpret_cast<const uint64_t*>(a + 8 * group)));
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) sums[j] = vmmlaq_s32(sums[j], row, load(b + 8 * columns * group + 16 * j));
  };
  int64_t p = 0;
  for (; p + at_once <= groups; p += at_once) {
#pragma GCC unroll 4
    for (int i = 0; i < at_once; ++i) add_group(acc[i], p + i);
  }
  for (; p < groups; ++p) add_group(acc[0], p);
  int64x2_t sums[column_pairs];
#pragma GCC unroll 4
  for (int j = 0; j < column_pairs; ++j)
    sums[j] = vreinterpretq_s64_s32(vaddq_s32(vaddq_s32(acc[0][j], acc[1][j]), vaddq_s32(acc[2][j], acc[3][j])));
  const int32x4_t row = vld1q_dup_s32(of_rows);
  for (int j = 0; j < column_pairs; j += 2) {
    const int32x4_t four = vreinterpretq_s32_s64(vtrn1q_s64(sums[j], sums[j + 1]));
    vst1q_s32(c + 2 * j, vaddq_s32(vaddq_s32(vld1q_s32(of_columns + 2 * j), row), four));
  }
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

constexpr Int8Kernels int8_kernels_neon_i8mm = {
    "neon_i8mm",       rows, columns, 8, 8, false, 1, multiply<rows>, 2, multiply<2>, multiply_row, 64 * sums_at_once,
    multiply_registers};

}  // namespace tenon::kernels
