#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "kernels/conv_nhwc/neon_codes.h"
#include "kernels/conv_nhwc/neon_depthwise.h"
#include "kernels/conv_nhwc/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 6, columns = 16, pairs = columns / 2;

// These statements stay in their order, and what they change in its registers: gcc would move it to others, and through
// memory.
[[gnu::always_inline]] inline void load(int8x16_t& v, const uint8_t* p, int64_t at) {
  asm volatile("ldr %q0, [%1, %2]" : "=w"(v) : "r"(p), "r"(at));
}
[[gnu::always_inline]] inline void load(int8x16_t& v, const uint8_t* p) {
  asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const int8x16_t*>(p)));
}
// The lower halves of two registers, and their upper ones.
[[gnu::always_inline]] inline void interleave(int8x16_t& a, int8x16_t& b) {
  int8x16_t lower;
  asm volatile("zip1 %0.2d, %1.2d, %2.2d" : "=w"(lower) : "w"(a), "w"(b));
  asm volatile("zip2 %0.2d, %1.2d, %0.2d" : "+w"(b) : "w"(a));
  a = lower;
}
// Of pixels and weights.
template <bool Unsigned>
[[gnu::always_inline]] inline void add_products(int32x4_t& sum, int8x16_t a, int8x16_t b) {
  if constexpr (Unsigned)
    asm volatile("usmmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
  else
    asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
}

struct UnsignedDot {
  [[gnu::always_inline]] static int32x4_t add(int32x4_t sums, int8x16_t pixels, int8x16_t weights) {
    return vusdotq_s32(sums, vreinterpretq_u8_s8(pixels), weights);
  }
};

// Eight bytes of each pixel. A register holds those of two pixels, a sum the products of two pixels and two columns.
template <bool Unsigned, int RowPairs>
[[gnu::always_inline]] inline void multiply_group(int32x4_t (&acc)[RowPairs][pairs], const int8x16_t (&a)[RowPairs],
                                                  const uint8_t* weights) {
#pragma GCC unroll 8
  for (int j = 0; j < pairs; ++j) {
    int8x16_t b;
    load(b, weights + 16 * j);
#pragma GCC unroll 4
    for (int i = 0; i < RowPairs; ++i) add_products<Unsigned>(acc[i][j], a[i], b);
  }
}

// Eight bytes of two pixels side by side, or four and zeros.
[[gnu::always_inline]] inline void load_eight(int8x16_t& v, const uint8_t* first, const uint8_t* second, int64_t at) {
  int8x16_t other;
  asm volatile("ldr %d0, [%1, %2]" : "=w"(v) : "r"(first), "r"(at));
  asm volatile("ldr %d0, [%1, %2]" : "=w"(other) : "r"(second), "r"(at));
  asm volatile("zip1 %0.2d, %0.2d, %1.2d" : "+w"(v) : "w"(other));
}
[[gnu::always_inline]] inline void load_four(int8x16_t& v, const uint8_t* first, const uint8_t* second, int64_t at) {
  int8x16_t other;
  asm volatile("ldr %s0, [%1, %2]" : "=w"(v) : "r"(first), "r"(at));
  asm volatile("ldr %s0, [%1, %2]" : "=w"(other) : "r"(second), "r"(at));
  asm volatile("zip1 %0.2d, %0.2d, %1.2d" : "+w"(v) : "w"(other));
}

// Stores the sums of eight columns, from pair First on.
template <int Rows, int First, int RowPairs>
[[gnu::always_inline]] inline void store_eight(const NhwcTile& tile, int64_t column,
                                               const int32x4_t (&acc)[RowPairs][pairs]) {
  store_codes<Rows>(
      tile, column + 2 * First, [&](int i, int half) __attribute__((always_inline)) {
        const int64x2_t left = vreinterpretq_s64_s32(acc[i / 2][First + 2 * half]);
        const int64x2_t right = vreinterpretq_s64_s32(acc[i / 2][First + 2 * half + 1]);
        return vreinterpretq_s32_s64(i % 2 == 0 ? vzip1q_s64(left, right) : vzip2q_s64(left, right));
      });
}

// The last pixel of an odd number of them is taken twice.
template <int Rows, bool Unsigned>
void multiply(const NhwcTile& given) {
  const NhwcTile tile = given;  // which nothing that is stored can change
  constexpr int group = 8 * columns, row_pairs = (Rows + 1) / 2;
  const uint8_t* weights = tile.weights;
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    int32x4_t acc[row_pairs][pairs];
#pragma GCC unroll 8
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
      int8x16_t first[row_pairs], second[row_pairs];
      for (; c + 16 <= tile.bytes; c += 16, weights += 2 * group) {
#pragma GCC unroll 4
        for (int i = 0; i < row_pairs; ++i) {
          load(first[i], pixels[2 * i], c);
          load(second[i], pixels[2 * i + 1], c);
          interleave(first[i], second[i]);
        }
        multiply_group<Unsigned>(acc, first, weights);
        multiply_group<Unsigned>(acc, second, weights + group);
      }
      if (tile.bytes & 8) {
#pragma GCC unroll 4
        for (int i = 0; i < row_pairs; ++i) load_eight(first[i], pixels[2 * i], pixels[2 * i + 1], c);
        multiply_group<Unsigned>(acc, first, weights);
        c += 8, weights += group;
      }
      if (tile.bytes & 4) {
#pragma GCC unroll 4
        for (int i = 0; i < row_pairs; ++i) load_four(first[i], pixels[2 * i], pixels[2 * i + 1], c);
        multiply_group<Unsigned>(acc, first, weights);
        weights += group;
      }
    }
    store_eight<Rows, 0>(tile, panel * columns, acc);
    store_eight<Rows, 4>(tile, panel * columns, acc);
  }
}

template <bool Unsigned, class Dot, int... Rows>
constexpr NhwcConvKernels table(const char* name, const NhwcConvKernels* other, std::integer_sequence<int, Rows...>) {
  return {.name = name,
          .unsigned_pixels = Unsigned,
          .shifts = true,
          .rows = rows,
          .columns = columns,
          .group = 8,
          .multiply = {multiply<Rows + 1, Unsigned>...},
          .depthwise = {depthwise<1, Dot>, depthwise<2, Dot>, depthwise<4, Dot>},
          .joins_rows = true,
          .other_pixels = other};
}

constexpr auto each_count = std::make_integer_sequence<int, rows>{};

}  // namespace

constexpr NhwcConvKernels nhwc_conv_kernels_neon_i8mm_unsigned =
    table<true, UnsignedDot>("neon_i8mm_unsigned", &nhwc_conv_kernels_neon_i8mm, each_count);
constexpr NhwcConvKernels nhwc_conv_kernels_neon_i8mm =
    table<false, SignedDot>("neon_i8mm", &nhwc_conv_kernels_neon_i8mm_unsigned, each_count);

}  // namespace tenon::kernels
