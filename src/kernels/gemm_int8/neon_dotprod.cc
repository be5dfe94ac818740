#include <arm_neon.h>

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

template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  int32x4_t acc[rows][vectors] = {};
  for (int64_t p = 0; p < groups; ++p, a += 4 * rows, b += 4 * columns) {
    const int8x16_t b0 = load(b), b1 = load(b + 16);
    multiply_add<Rows>(acc, 0, load(a), b0, b1);
    if constexpr (Rows > 4) multiply_add<Rows>(acc, 4, load(a + 16), b0, b1);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    vst1q_s32(tile + i * columns, acc[i][0]);
    vst1q_s32(tile + i * columns + 4, acc[i][1]);
  }
}

// Two groups at a time, whose sums do not wait for each other.
void multiply_one(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  int32x4_t even[vectors] = {}, odd[vectors] = {};
  const auto add = [](int32x4_t(&acc)[vectors], const uint8_t* left, const uint8_t* right) {
    const int8x16_t row = load(left);
    acc[0] = vdotq_laneq_s32(acc[0], load(right), row, 0);
    acc[1] = vdotq_laneq_s32(acc[1], load(right + 16), row, 0);
  };
  int64_t p = 0;
#pragma GCC unroll 2
  for (; p + 2 <= groups; p += 2, a += 8 * rows, b += 8 * columns) {
    add(even, a, b);
    add(odd, a + 4 * rows, b + 4 * columns);
  }
  if (p < groups) add(even, a, b);
  vst1q_s32(tile, vaddq_s32(even[0], odd[0]));
  vst1q_s32(tile + 4, vaddq_s32(even[1], odd[1]));
}

}  // namespace

constexpr Int8Kernels int8_kernels_neon_dotprod = {"neon_dotprod", rows,           columns,     4,           4,
                                                   false,          multiply<rows>, multiply<2>, multiply_one};

}  // namespace tenon::kernels
