#include <arm_neon.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/gemm_int8/tile.h"
#include "kernels/neon_byte_products.h"
#include "kernels/neon_codes.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 12, columns = 8, column_pairs = 4;

inline int8x16_t load(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }

// In its place, as the products are: gcc would add before the last loads, which then would wait for it.
template <int Bytes>
[[gnu::always_inline]] inline void advance(const uint8_t*& p) {
  asm volatile("add %0, %0, %1" : "+r"(p) : "i"(Bytes));
}

// What a group multiplies. Registers are loaded anew right behind their last use: later, products would wait for them.
struct Operands {
  int8x16_t left[2], right[column_pairs];

  [[gnu::always_inline]] Operands(const uint8_t* a, const uint8_t* b) {
    load_two(right[0], right[1], b, 0);
    load_two(right[2], right[3], b, 32);
    load_two(left[0], left[1], a, 0);
  }

  // Loads have their places in their instructions: additions would take time too.
  template <bool Last, int RowPairs>
  [[gnu::always_inline]] void multiply_group(int32x4_t (&acc)[RowPairs][column_pairs], const uint8_t* a,
                                             const uint8_t* b) {
#pragma GCC unroll 6
    for (int i = 0; i < RowPairs; ++i) {
      const bool is_last = i == RowPairs - 1;
#pragma GCC unroll 4
      for (int j = 0; j < column_pairs; ++j) {
        add_products(acc[i][j], left[i % 2], right[j]);
        if (!Last && is_last && j % 2 == 1) load_two(right[j - 1], right[j], b, 8 * columns + 16 * (j - 1));
      }
      if (i % 2 == 1 && !is_last) load_two(left[0], left[1], a, 16 * (i + 1));
    }
    if constexpr (!Last) load_two(left[0], left[1], a, 8 * rows);
  }
};

template <int RowPairs>
[[gnu::always_inline]] inline void add_all_products(int64_t groups, const uint8_t* a, const uint8_t* b,
                                                    int32x4_t (&acc)[RowPairs][column_pairs]) {
  if (groups == 0) return;
  Operands operands(a, b);
  const uint8_t* const last = b + (groups - 1) * 8 * columns;
  while (b != last) {
    operands.multiply_group<false>(acc, a, b);
    advance<8 * rows>(a);
    advance<8 * columns>(b);
  }
  operands.multiply_group<true>(acc, a, b);
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
  add_all_products(groups, a, b, acc);
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

// What a register has for two columns, and for two rows of them.
template <class Number>
[[gnu::always_inline]] inline int32x4_t twice(const Number* two) {
  return vreinterpretq_s32_s64(vld1q_dup_s64(reinterpret_cast<const int64_t*>(two)));
}

// What the sums of a tile begin with, and the scales of its columns. They are loaded: copies of registers would take
// the time of products.
struct CodeColumns {
  int32x4_t first[rows / 2][column_pairs];
  int64_t row_step = 0;  // of `first`, which is the same for all rows unless something is added to rows
  float32x4_t scales[column_pairs], addends[column_pairs];

  void set(const Int8CodeTiles& t, int64_t column) {
    const int32x4_t shift = vdupq_n_s32(t.range == CodeRange::any ? 0 : code_shift_bits);
    for (int j = 0; j < column_pairs; ++j) {
      first[0][j] = vaddq_s32(twice(t.of_columns + column + 2 * j), shift);
      scales[j] = vreinterpretq_f32_s32(twice(t.scales + column + 2 * j));
      if (t.addends) addends[j] = vreinterpretq_f32_s32(twice(t.addends + column + 2 * j));
    }
  }
  void add_rows(const int32_t* of_rows) {
    row_step = column_pairs;
    for (int i = rows / 2 - 1; i >= 0; --i) {
      const int32x4_t both =
          vreinterpretq_s32_s64(vtrn1q_s64(vreinterpretq_s64_s32(vld1q_dup_s32(of_rows + 2 * i)),
                                           vreinterpretq_s64_s32(vld1q_dup_s32(of_rows + 2 * i + 1))));
      for (int j = 0; j < column_pairs; ++j) first[i][j] = vaddq_s32(first[0][j], both);
    }
  }
  template <int RowPairs>
  [[gnu::always_inline]] void load(int32x4_t (&acc)[RowPairs][column_pairs]) const {
    const int32x4_t* from = first[0];
#pragma GCC unroll 6
    for (int i = 0; i < RowPairs; ++i, from += row_step) {
#pragma GCC unroll 4
      for (int j = 0; j < column_pairs; ++j) asm volatile("ldr %q0, %1" : "=w"(acc[i][j]) : "m"(from[j]));
    }
  }
};

// Codes of a tile as numbers of 16 bits that are not limited yet: two sums of each of two rows, and two more.
class CodesOfTile {
 public:
  explicit CodesOfTile(const Int8CodeTiles& t) : codes_(t, 0) {}

  template <CodeRange Range>
  [[gnu::always_inline]] int16x8_t halves(const CodeColumns& of, int pair, int32x4_t low, int32x4_t high) const {
    return codes_.halves<Range>({low, high}, {of.scales[pair], of.scales[pair + 1]});
  }

 private:
  NeonCodes codes_;
};

// The same where codes are added to those of the sums.
class AddedCodesOfTile {
 public:
  explicit AddedCodesOfTile(const Int8CodeTiles& t)
      : code_low_(number(t.lowest - t.code_zero)),
        code_high_(number(t.highest - t.code_zero)),
        factor_(vdupq_n_f32(t.factor)),
        low_(number(t.lowest - t.zero)),
        high_(number(t.highest - t.zero)),
        zero_(vdupq_n_s16(static_cast<int16_t>(t.zero))) {}

  template <CodeRange Range>
  [[gnu::always_inline]] int16x8_t halves(const CodeColumns& of, int pair, int32x4_t low, int32x4_t high) const {
    const int16x8_t first = shifted<Range>(low, of.scales[pair], of.addends[pair]),
                    second = shifted<Range>(high, of.scales[pair + 1], of.addends[pair + 1]);
    return vaddq_s16(vuzp1q_s16(first, second), zero_);
  }

 private:
  static float32x4_t number(int32_t value) { return vdupq_n_f32(static_cast<float>(value)); }

  // Whole numbers, as the lowest bits of floats.
  template <CodeRange Range>
  [[gnu::always_inline]] int16x8_t shifted(int32x4_t sum, float32x4_t scale, float32x4_t addend) const {
    const float32x4_t shift = vdupq_n_f32(code_shift);
    const float32x4_t whole =
        Range == CodeRange::any ? vcvtq_f32_s32(sum) : vsubq_f32(vreinterpretq_f32_s32(sum), shift);
    const float32x4_t limited = vminnmq_f32(vmaxnmq_f32(vmulq_f32(whole, scale), code_low_), code_high_);
    const float32x4_t code = vsubq_f32(vaddq_f32(limited, shift), shift);
    const float32x4_t value = vaddq_f32(vmulq_f32(code, factor_), addend);
    return vreinterpretq_s16_f32(vaddq_f32(vminnmq_f32(vmaxnmq_f32(value, low_), high_), shift));
  }

  float32x4_t code_low_, code_high_, factor_, low_, high_;
  int16x8_t zero_;
};

template <CodeRange Range, bool Signed, class Codes, int RowPairs>
[[gnu::always_inline]] inline void store_codes(const Codes& codes, const CodeColumns& of,
                                               const int32x4_t (&acc)[RowPairs][column_pairs], uint8_t* to,
                                               int64_t ld) {
#pragma GCC unroll 6
  for (int i = 0; i < RowPairs; ++i, to += 2 * ld) {
    const int32x4_t low = vreinterpretq_s32_s16(codes.template halves<Range>(of, 0, acc[i][0], acc[i][1]));
    const int32x4_t high = vreinterpretq_s32_s16(codes.template halves<Range>(of, 2, acc[i][2], acc[i][3]));
    vst1_u8(to, NeonCodes::narrowed<Signed>(vreinterpretq_s16_s32(vuzp1q_s32(low, high))));
    vst1_u8(to + ld, NeonCodes::narrowed<Signed>(vreinterpretq_s16_s32(vuzp2q_s32(low, high))));
  }
}

// A left panel of at most 2 * RowPairs rows by a right one. Not inlined: gcc would keep sums in memory.
template <int RowPairs, class Codes>
[[gnu::noinline]] void code_tile(const Int8CodeTiles& t, const uint8_t* a, const uint8_t* b, const CodeColumns& of,
                                 uint8_t* to, int64_t ld) {
  int32x4_t acc[RowPairs][column_pairs];
  of.load(acc);
  add_all_products(t.groups, a, b, acc);
  const Codes codes(t);
  for_kind(
      t, [&]<CodeRange Range, bool Signed>()
             __attribute__((always_inline)) { store_codes<Range, Signed>(codes, of, acc, to, ld); });
}

// The same where maybe not all of its codes are stored.
template <int RowPairs>
void code_part(const Int8CodeTiles& t, const uint8_t* a, const uint8_t* b, const CodeColumns& of, int64_t row_count,
               int64_t column_count, uint8_t* to) {
  const auto multiply_tile = t.addends ? code_tile<RowPairs, AddedCodesOfTile> : code_tile<RowPairs, CodesOfTile>;
  if (row_count == 2 * RowPairs && column_count == columns) return multiply_tile(t, a, b, of, to, t.ldy);
  uint8_t part[2 * RowPairs * columns];
  multiply_tile(t, a, b, of, part, columns);
  for (int64_t i = 0; i < row_count; ++i)
    std::memcpy(to + i * t.ldy, part + i * columns, static_cast<size_t>(column_count));
}

void codes_of_tiles(const Int8CodeTiles& given) {
  const Int8CodeTiles t = given;  // which nothing that is stored can change
  CodeColumns of[most_int8_code_panels];
  for (int64_t column = 0; column < t.columns; column += columns) of[column / columns].set(t, column);
  for (int64_t row = 0; row < t.rows; row += rows) {
    const uint8_t *a = t.a + row * t.groups * 8, *b = t.b;
    const int64_t row_count = std::min<int64_t>(rows, t.rows - row);
    const auto multiply_tile = row_count > 8 ? code_part<6> : row_count > 4 ? code_part<4> : code_part<2>;
    for (int64_t column = 0; column < t.columns; column += columns, b += t.groups * 8 * columns) {
      CodeColumns& own = of[column / columns];
      if (t.of_rows) own.set(t, column), own.add_rows(t.of_rows + row);
      multiply_tile(t, a, b, own, row_count, std::min<int64_t>(columns, t.columns - column),
                    t.y + row * t.ldy + column);
    }
  }
}

// A register has the steps of two columns, a sum half of those of one.
void magnitudes(int64_t groups, const uint8_t* b, const int32_t* zeros, int32_t* to) {
  uint32x4_t acc[column_pairs] = {};
  int8x16_t zero[column_pairs];
  for (int j = 0; j < column_pairs; ++j) {
    zero[j] =
        vcombine_s8(vdup_n_s8(static_cast<int8_t>(zeros[2 * j])), vdup_n_s8(static_cast<int8_t>(zeros[2 * j + 1])));
  }
  for (int64_t p = 0; p < groups; ++p, b += 8 * columns) {
    for (int j = 0; j < column_pairs; ++j) {
      const uint8x16_t difference = vreinterpretq_u8_s8(vabdq_s8(load(b + 16 * j), zero[j]));
      acc[j] = vdotq_u32(acc[j], difference, vdupq_n_u8(1));
    }
  }
  for (int j = 0; j < column_pairs; ++j)
    vst1_s32(to + 2 * j, vreinterpret_s32_u32(vpadd_u32(vget_low_u32(acc[j]), vget_high_u32(acc[j]))));
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

constexpr Int8Kernels int8_kernels_neon_i8mm = {.name = "neon_i8mm",
                                                .tile_rows = rows,
                                                .tile_columns = columns,
                                                .k_group = 8,
                                                .left_k_group = 8,
                                                .left_is_unsigned = false,
                                                .row_lanes = 1,
                                                .all_rows = multiply<rows>,
                                                .few = 2,
                                                .few_rows = multiply<2>,
                                                .one_row = multiply_row,
                                                .peak_operations = 64 * sums_at_once,
                                                .peak = multiply_registers,
                                                .some = 8,
                                                .some_rows = multiply<8>,
                                                .codes_of_tiles = codes_of_tiles,
                                                .magnitudes = magnitudes};

}  // namespace tenon::kernels
