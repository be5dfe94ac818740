#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/neon_codes.h"
#include "kernels/conv_nhwc/neon_depthwise.h"
#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 8, vectors = 2;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// Adds the products of group `Lane` of each pixel's four.
template <int Lane, int Rows>
[[gnu::always_inline]] inline void multiply_group(int32x4_t (&acc)[Rows][vectors], const int8x16_t (&a)[Rows],
                                                  const uint8_t* weights) {
  const int8x16_t b0 = load(weights), b1 = load(weights + 16);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    acc[i][0] = vdotq_laneq_s32(acc[i][0], b0, a[i], Lane);
    acc[i][1] = vdotq_laneq_s32(acc[i][1], b1, a[i], Lane);
  }
}

template <int Rows>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  constexpr int group = 4 * columns;
  const uint8_t* weights = tile.weights;
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    int32x4_t acc[Rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      acc[i][0] = vld1q_s32(tile.bias + panel * columns);
      acc[i][1] = vld1q_s32(tile.bias + panel * columns + 4);
    }
    const uint8_t* const* next = tile.pixels;
    for (int64_t tap = 0; tap < tile.taps; ++tap, next += Rows) {
      const uint8_t* pixels[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) pixels[i] = next[i];
      int64_t c = 0;
      for (; c + 16 <= tile.bytes; c += 16, weights += 4 * group) {
        int8x16_t a[Rows];
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) a[i] = load(pixels[i] + c);
        multiply_group<0>(acc, a, weights);
        multiply_group<1>(acc, a, weights + group);
        multiply_group<2>(acc, a, weights + 2 * group);
        multiply_group<3>(acc, a, weights + 3 * group);
      }
      for (; c < tile.bytes; c += 4, weights += group) {
        int8x16_t a[Rows];
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          int32_t codes;
          std::memcpy(&codes, pixels[i] + c, sizeof codes);
          a[i] = vreinterpretq_s8_s32(vdupq_n_s32(codes));
        }
        multiply_group<0>(acc, a, weights);
      }
    }
    store_codes<Rows>(tile, panel * columns, [&](int i, int half) { return acc[i][half]; });
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {.name = "neon_dotprod",
          .shifts = true,
          .rows = rows,
          .columns = columns,
          .group = 4,
          .multiply = {multiply<Rows + 1>...},
          .depthwise = {depthwise<1>, depthwise<2>, depthwise<4>},
          .joins_rows = true};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_neon_dotprod = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
