#include <arm_neon.h>

#include <cstring>
#include <type_traits>

#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 8, vectors = 2;

// Four rows, whose codes of one group fill one register.
template <int Rows>
inline void multiply_add(int32x4_t (&acc)[rows][vectors], int first, int8x16_t a, int8x16_t b0, int8x16_t b1) {
  acc[first][0] = vdotq_laneq_s32(acc[first][0], b0, a, 0);
  acc[first][1] = vdotq_laneq_s32(acc[first][1], b1, a, 0);
  acc[first + 1][0] = vdotq_laneq_s32(acc[first + 1][0], b0, a, 1);
  acc[first + 1][1] = vdotq_laneq_s32(acc[first + 1][1], b1, a, 1);
  if constexpr (Rows > 2) {
    acc[first + 2][0] = vdotq_laneq_s32(acc[first + 2][0], b0, a, 2);
    acc[first + 2][1] = vdotq_laneq_s32(acc[first + 2][1], b1, a, 2);
    acc[first + 3][0] = vdotq_laneq_s32(acc[first + 3][0], b0, a, 3);
    acc[first + 3][1] = vdotq_laneq_s32(acc[first + 3][1], b1, a, 3);
  }
}

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// Adds products to what `acc` holds and stores it.
template <int Rows>
[[gnu::always_inline]] inline void multiply(int64_t groups, const uint8_t* a, const uint8_t* b,
                                            int32x4_t (&acc)[rows][vectors], int32_t* c, int64_t ldc) {
  for (int64_t p = 0; p < groups; ++p, a += 4 * rows, b += 4 * columns) {
    const int8x16_t b0 = load(b), b1 = load(b + 16);
    multiply_add<Rows>(acc, 0, load(a), b0, b1);
    if constexpr (Rows > 4) multiply_add<Rows>(acc, 4, load(a + 16), b0, b1);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    vst1q_s32(c + i * ldc, acc[i][0]);
    vst1q_s32(c + i * ldc + 4, acc[i][1]);
  }
}

template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  int32x4_t acc[rows][vectors];
  const int32x4_t first = vld1q_s32(of_columns), second = vld1q_s32(of_columns + 4);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const int32x4_t row = vld1q_dup_s32(of_rows + i);
    acc[i][0] = vaddq_s32(first, row);
    acc[i][1] = vaddq_s32(second, row);
  }
  multiply<Rows>(groups, a, b, acc, c, ldc);
}

// A row alone: adds products to what `even` holds and stores it. Groups that follow each other add to sums that do not
// wait for each other.
[[gnu::always_inline]] inline void multiply_row(int64_t groups, const uint8_t* a, const uint8_t* b,
                                                int32x4_t (&even)[vectors], int32_t* c) {
  int32x4_t odd[vectors] = {};
  const auto add = [&]<int Lane>(int32x4_t(&acc)[vectors], int8x16_t row, std::integral_constant<int, Lane>) {
    acc[0] = vdotq_laneq_s32(acc[0], load(b + 4 * columns * Lane), row, Lane);
    acc[1] = vdotq_laneq_s32(acc[1], load(b + 4 * columns * Lane + 16), row, Lane);
  };
  int64_t p = 0;
  for (; p + 4 <= groups; p += 4, a += 16, b += 16 * columns) {
    const int8x16_t row = load(a);
    add(even, row, std::integral_constant<int, 0>{});
    add(odd, row, std::integral_constant<int, 1>{});
    add(even, row, std::integral_constant<int, 2>{});
    add(odd, row, std::integral_constant<int, 3>{});
  }
  for (; p < groups; ++p, a += 4, b += 4 * columns) {
    int32_t codes;
    std::memcpy(&codes, a, sizeof codes);
    add(even, vreinterpretq_s8_s32(vdupq_n_s32(codes)), std::integral_constant<int, 0>{});
  }
  vst1q_s32(c, vaddq_s32(even[0], odd[0]));
  vst1q_s32(c + 4, vaddq_s32(even[1], odd[1]));
}

void multiply_row(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
                  int32_t* c, int64_t) {
  const int32x4_t row = vld1q_dup_s32(of_rows);
  int32x4_t acc[vectors] = {vaddq_s32(vld1q_s32(of_columns), row), vaddq_s32(vld1q_s32(of_columns + 4), row)};
  multiply_row(groups, a, b, acc, c);
}

constexpr int sums_at_once = 16;

int32_t multiply_registers(int64_t steps, const uint8_t* codes) {
  int32x4_t acc[sums_at_once];
#pragma GCC unroll 16
  for (int i = 0; i < sums_at_once; ++i) acc[i] = vdupq_n_s32(i);  // or one would do for all
  const int8x16_t a = load(codes), b = load(codes + 16);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < sums_at_once; ++i) acc[i] = vdotq_s32(acc[i], a, b);
  }
  int32x4_t sum = acc[0];
#pragma GCC unroll 16
  for (int i = 1; i < sums_at_once; ++i) sum = vaddq_s32(sum, acc[i]);
  return vaddvq_s32(sum);
}

}  // namespace

constexpr Int8Kernels int8_kernels_neon_dotprod = {
    "neon_dotprod",    rows, columns, 4, 4, false, 1, multiply<rows>, 2, multiply<2>, multiply_row, 32 * sums_at_once,
    multiply_registers};

}  // namespace tenon::kernels
