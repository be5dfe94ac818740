#include "kernels/gemm_nbits/neon_codes.h"
#include "kernels/neon_byte_products.h"

namespace tenon::kernels {
namespace {

using F = NbitsNeon::F;
constexpr int column_pairs = 4, columns = 2 * column_pairs, steps_at_once = 8;

template <int bits>
[[gnu::always_inline]] inline void unpack_block(int64_t steps, const uint8_t* codes, uint8_t* to) {
  using Tiles = NbitsTiles<NbitsNeon>;
  constexpr int groups = Tiles::groups_of_step<bits>;
  const int8x16_t excess = vdupq_n_s8(static_cast<int8_t>(NbitsNeon::excess(bits)));
  const auto read = [&](int64_t group, int8x16_t(&of_columns)[2]) {
    NbitsNeon::codes<bits>(codes + group / groups * Tiles::bytes_of_step<bits>, static_cast<int>(group % groups),
                           of_columns);
    for (int8x16_t& four : of_columns) four = vsubq_s8(four, excess);
  };
  for (int64_t group = 0; group < steps / nbits_group; group += 2, to += columns * steps_at_once) {
    int8x16_t first[2], second[2];
    read(group, first);
    read(group + 1, second);
    for (int v = 0; v < 2; ++v) {
      const int32x4_t low = vreinterpretq_s32_s8(first[v]), high = vreinterpretq_s32_s8(second[v]);
      vst1q_u8(to + 32 * v, vreinterpretq_u8_s32(vzip1q_s32(low, high)));
      vst1q_u8(to + 32 * v + 16, vreinterpretq_u8_s32(vzip2q_s32(low, high)));
    }
  }
}

template <int bits>
void unpack(int64_t blocks, int64_t head_bytes, int64_t steps, const uint8_t* panel, uint8_t* to) {
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t i = 0; i < head_bytes; i += 16) vst1q_u8(to + i, vld1q_u8(panel + i));
    unpack_block<bits>(steps, panel + head_bytes, to + head_bytes);
    panel += head_bytes + steps * columns * bits / 8;
    to += head_bytes + steps * columns;
  }
}

// A pair of numbers twice, as they are beside two rows.
inline F of_columns(const uint8_t* pair) {
  F both;
  asm("ld1r {%0.2d}, %1" : "=w"(both) : "Q"(*reinterpret_cast<const double*>(pair)));
  return both;
}

// Each number of a pair twice, as they are beside two columns.
template <int RowPairs>
inline void of_rows(const float* from, F (&to)[RowPairs]) {
  if constexpr (RowPairs > 1) {
    const float32x4_t pairs = vld1q_f32(from);
    to[0] = (F)vzip1q_f32(pairs, pairs);
    to[1] = (F)vzip2q_f32(pairs, pairs);
  }
  if constexpr (RowPairs % 2 != 0) {
    const float32x2_t pair = vld1_f32(from + 2 * RowPairs - 2);
    to[RowPairs - 1] = (F)vzip1q_f32(vcombine_f32(pair, pair), vcombine_f32(pair, pair));
  }
}

// In its place, as the products are.
[[gnu::always_inline]] inline void load(int8x16_t& v, const int8_t* p, int at) {
  asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const int8x16_t*>(p + at)));
}

template <int RowPairs>
using Tile = F[RowPairs][column_pairs];

// Products with a digit of a run, as floats. One instruction multiplies two rows with two columns, eight steps deep: a
// register has two sums of each row. Sums start with a number from memory: copying a register takes a unit that
// multiplies.
template <int RowPairs>
[[gnu::always_inline]] inline void multiply_digit(int64_t groups, const uint8_t* codes, const int8_t* digits,
                                                  Tile<RowPairs>& values) {
  static constexpr float bases[] = {nbits_base, nbits_base, nbits_base, nbits_base};
  int32x4_t sums[RowPairs][column_pairs];
#pragma GCC unroll 3
  for (int i = 0; i < RowPairs; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) sums[i][j] = (int32x4_t)NbitsNeon::load_anew(bases);
  }
  const uint8_t* const end = codes + groups * columns * steps_at_once;
  do {
    int8x16_t right[column_pairs];
#pragma GCC unroll 2
    for (int j = 0; j < column_pairs; j += 2) load_two(right[j], right[j + 1], codes, 16 * j);
#pragma GCC unroll 3
    for (int i = 0; i < RowPairs; ++i) {
      int8x16_t left;
      load(left, digits, 16 * i);
#pragma GCC unroll 4
      for (int j = 0; j < column_pairs; ++j) add_products(sums[i][j], left, right[j]);
    }
    codes += columns * steps_at_once;
    digits += 2 * RowPairs * steps_at_once;
  } while (codes != end);
#pragma GCC unroll 3
  for (int i = 0; i < RowPairs; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < column_pairs; ++j) values[i][j] = (F)sums[i][j] - nbits_base;
  }
}

template <bool HasZeros, int Digits, int RowPairs>
void multiply_bytes(const NbitsTile& tile) {
  const uint8_t* panel = tile.panel;
  const int8_t* digits = tile.digits;
  const float *row_scales = tile.scales, *totals = tile.totals;
  const int64_t groups = tile.run / steps_at_once, digit_bytes = tile.run * 2 * RowPairs;
  Tile<RowPairs> results = {};
  for (int64_t block = 0; block < tile.blocks; ++block) {
    const uint8_t *scales = panel, *zeros = panel + columns * sizeof(float);
    panel += columns * sizeof(float) * (HasZeros ? 2 : 1);
    for (int64_t run = 0; run < tile.runs; ++run) {
      Tile<RowPairs> parts[Digits];
#pragma GCC unroll 3
      for (int d = 0; d < Digits; ++d, digits += digit_bytes) {
        multiply_digit<RowPairs>(groups, panel, digits, parts[d]);
#pragma GCC unroll 3
        for (int i = 0; d > 0 && i < RowPairs; ++i) {
#pragma GCC unroll 4
          for (int j = 0; j < column_pairs; ++j)
            parts[d][i][j] = NbitsNeon::fma(parts[d - 1][i][j], F{} + 256.0f, parts[d][i][j]);
        }
      }
      panel += groups * columns * steps_at_once;
      F of_row[RowPairs], total_of_row[RowPairs];
      of_rows(row_scales, of_row);
      if constexpr (HasZeros) of_rows(totals, total_of_row);
#pragma GCC unroll 4
      for (int j = 0; j < column_pairs; ++j) {
        const F of_column = of_columns(scales + 8 * j), zero = HasZeros ? of_columns(zeros + 8 * j) : F{};
#pragma GCC unroll 3
        for (int i = 0; i < RowPairs; ++i) {
          F value = parts[Digits - 1][i][j];
          if constexpr (HasZeros) value = NbitsNeon::fma(zero, -total_of_row[i], value);
          results[i][j] = NbitsNeon::fma(value, of_column * of_row[i], results[i][j]);
        }
      }
      row_scales += 2 * RowPairs;
      totals += 2 * RowPairs;
    }
  }
#pragma GCC unroll 3
  for (int i = 0; i < RowPairs; ++i) {
    float *even = tile.out + 2 * i * tile.out_stride, *odd = even + tile.out_stride;
#pragma GCC unroll 2
    for (int j = 0; j < column_pairs; j += 2) {
      const auto first = (float64x2_t)results[i][j], second = (float64x2_t)results[i][j + 1];
      vst1q_f32(even + 2 * j, (float32x4_t)vtrn1q_f64(first, second));
      vst1q_f32(odd + 2 * j, (float32x4_t)vtrn2q_f64(first, second));
    }
  }
}

template <bool HasZeros>
constexpr void fill(MultiplyNbits (&to)[most_nbits_digits][NbitsByteKernels::sizes]) {
  to[0][0] = multiply_bytes<HasZeros, 1, 3>;
  to[0][1] = multiply_bytes<HasZeros, 1, 2>;
  to[0][2] = multiply_bytes<HasZeros, 1, 1>;
  to[1][0] = multiply_bytes<HasZeros, 2, 2>;
  to[1][1] = multiply_bytes<HasZeros, 2, 1>;
  to[2][0] = multiply_bytes<HasZeros, 3, 2>;
  to[2][1] = multiply_bytes<HasZeros, 3, 1>;
}

// Dot products for few rows, products of matrices for many.
constexpr NbitsKernels table() {
  NbitsKernels result = NbitsTiles<NbitsNeon>::table("neon_i8mm");
  result.bytes = {.least_rows = 6,
                  .group = steps_at_once,
                  .unpack = {unpack<2>, unpack<4>, unpack<8>},
                  .rows = {{6, 4, 2}, {4, 2}, {4, 2}}};
  fill<false>(result.bytes.multiply[0]);
  fill<true>(result.bytes.multiply[1]);
  return result;
}

}  // namespace

constexpr NbitsKernels nbits_kernels_neon_i8mm = table();

}  // namespace tenon::kernels
