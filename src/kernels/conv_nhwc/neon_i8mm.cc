#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/neon_codes.h"
#include "kernels/conv_nhwc/neon_depthwise.h"
#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, columns = 8, pairs = columns / 2;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
inline int64x2_t load_words(const uint8_t* p) { return vreinterpretq_s64_u8(vld1q_u8(p)); }

// Eight bytes of each pixel. A register holds those of two pixels, a sum the products of two pixels and two columns.
template <int RowPairs>
[[gnu::always_inline]] inline void multiply_group(int32x4_t (&acc)[RowPairs][pairs], const int8x16_t (&a)[RowPairs],
                                                  const uint8_t* weights) {
#pragma GCC unroll 4
  for (int j = 0; j < pairs; ++j) {
    const int8x16_t b = load(weights + 16 * j);
#pragma GCC unroll 4
    for (int i = 0; i < RowPairs; ++i) acc[i][j] = vmmlaq_s32(acc[i][j], a[i], b);
  }
}

// The last pixel of an odd number of them is taken twice.
template <int Rows>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  constexpr int group = 8 * columns, row_pairs = (Rows + 1) / 2;
  const uint8_t* weights = tile.weights;
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    int32x4_t acc[row_pairs][pairs];
#pragma GCC unroll 4
    for (int j = 0; j < pairs; ++j) {
      const int32x2_t bias = vld1_s32(tile.bias + panel * columns + 2 * j);
#pragma GCC unroll 4
      for (int i = 0; i < row_pairs; ++i) acc[i][j] = vcombine_s32(bias, bias);
    }
    const uint8_t* const* next = tile.pixels;
    for (int64_t tap = 0; tap < tile.taps; ++tap, next += Rows) {
      const uint8_t* pixels[2 * row_pairs];
#pragma GCC unroll 8
      for (int i = 0; i < 2 * row_pairs; ++i) pixels[i] = next[i < Rows ? i : Rows - 1];
      int64_t c = 0;
      for (; c + 16 <= tile.bytes; c += 16, weights += 2 * group) {
        int8x16_t first[row_pairs], second[row_pairs];
#pragma GCC unroll 4
        for (int i = 0; i < row_pairs; ++i) {
          const int64x2_t upper = load_words(pixels[2 * i] + c), lower = load_words(pixels[2 * i + 1] + c);
          first[i] = vreinterpretq_s8_s64(vzip1q_s64(upper, lower));
          second[i] = vreinterpretq_s8_s64(vzip2q_s64(upper, lower));
        }
        multiply_group(acc, first, weights);
        multiply_group(acc, second, weights + group);
      }
      for (; c < tile.bytes; c += 8, weights += group) {
        const size_t count = c + 8 <= tile.bytes ? 8 : 4;
        int8x16_t a[row_pairs];
#pragma GCC unroll 4
        for (int i = 0; i < row_pairs; ++i) {
          int64_t upper = 0, lower = 0;
          std::memcpy(&upper, pixels[2 * i] + c, count);
          std::memcpy(&lower, pixels[2 * i + 1] + c, count);
          a[i] = vreinterpretq_s8_s64(
              vcombine_s64(vcreate_s64(static_cast<uint64_t>(upper)), vcreate_s64(static_cast<uint64_t>(lower))));
        }
        multiply_group(acc, a, weights);
      }
    }
    store_codes<Rows>(tile, panel * columns, [&](int i, int half) {
      const int64x2_t left = vreinterpretq_s64_s32(acc[i / 2][2 * half]);
      const int64x2_t right = vreinterpretq_s64_s32(acc[i / 2][2 * half + 1]);
      return vreinterpretq_s32_s64(i % 2 == 0 ? vzip1q_s64(left, right) : vzip2q_s64(left, right));
    });
  }
}

template <int... Rows>
constexpr NhwcConvKernels table(std::integer_sequence<int, Rows...>) {
  return {"neon_i8mm",
          false,
          true,
          rows,
          columns,
          8,
          1,
          {multiply<Rows + 1>...},
          {depthwise<1>, depthwise<2>, depthwise<4>}};
}

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_neon_i8mm = table(std::make_integer_sequence<int, rows>{});

}  // namespace tenon::kernels
