// What differs between instruction sets in the multiplication of bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/code_products.h"

namespace tenon::kernels {

// A tile of a product: some rows of the left side times a right panel.
struct Int8Tile {
  const uint8_t* a;
  int64_t row_stride;   // of `a`
  int64_t step_stride;  // from left_k_group steps of all rows to the next
  bool few;             // rows
  const uint8_t* b;
  const int32_t *of_rows, *of_columns;  // of_rows may be null, which is zero
  int32_t* c;
  int64_t ldc;
};

// Right panels whose sums become codes at once: they stay in the first cache.
inline constexpr int most_int8_code_panels = 4;

// Some left panels times at most most_int8_code_panels right ones, whose sums become codes at once: scaled, rounded to
// even, the zero point added, saturated; the lowest code where a scale is NaN.
struct Int8CodeTiles {
  int64_t groups;
  const uint8_t *a, *b;
  int64_t rows, columns;                // that are stored; what is by row or column is there for whole panels
  const int32_t *of_rows, *of_columns;  // of_rows may be null, which is zero
  const float* scales;
  CodeRange range;
  int32_t lowest, highest;  // of the codes: those of int8_t or uint8_t
  int32_t zero;
  uint8_t* y;
  int64_t ldy;
  // Where there are addends, by column: codes with the zero point `code_zero` become others, round((code - code_zero) *
  // factor + addend) plus the zero point, saturated.
  const float* addends;
  float factor;
  int32_t code_zero;
};

// Tiles to be multiplied in turn. When one is asked for, all but the one before it are complete.
class Int8Tiles {
 public:
  // False where there is none left.
  virtual bool next(Int8Tile& tile) = 0;

 protected:
  ~Int8Tiles() = default;
};

// Panels hold some steps of k of one lane side by side, a group, then those of the next lane: [k /
// group][lanes][group]. Codes are signed; those of the left side are 128 larger, hence unsigned, where
// `left_is_unsigned`.
struct Int8Kernels {
  // c[i * ldc + j] = of_rows[i] + of_columns[j] + the sum over the steps of a[i] * b[j], wrapping around. `groups` are
  // those of the right side.
  using Multiply = void (*)(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows,
                            const int32_t* of_columns, int32_t* c, int64_t ldc);

  const char* name;
  int tile_rows;
  int tile_columns;  // a multiple of 8, at most most_tile_columns
  int k_group;       // of the right side: 1, 2, 4 or 8
  int left_k_group;  // the same, or 64; steps are a multiple of both
  bool left_is_unsigned;
  int row_lanes;  // of the panel of a left side of one row: 1 or tile_rows
  Multiply all_rows;
  int few;            // rows
  Multiply few_rows;  // may leave the other rows of the tile as they are
  Multiply one_row;   // the only one of the left side; writes no other
  // Products that stay in registers, which nothing can compute faster: how many operations a step takes, and some
  // steps, with what keeps the compiler from leaving them out. `codes` are 256, and come from memory.
  int64_t peak_operations;
  int32_t (*peak)(int64_t steps, const uint8_t* codes);
  // Called by a thread before it multiplies, and after; may be null.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
  // Packs groups of four steps of a right panel whose lanes are all there, side by side, with steps that start ld
  // apart. May be null.
  void (*pack_whole_columns)(const uint8_t* from, int64_t ld, int64_t groups, uint8_t flip, uint8_t* to) = nullptr;
  // Null where there is nothing to gain from multiplying tiles in turn. Groups are at least left_k_group steps.
  void (*all_tiles)(int64_t groups, Int8Tiles& tiles) = nullptr;
  // Products of more than `few` rows whose sums become codes, with a left side of whole rows of code_step_bytes. May be
  // null.
  void (*to_codes)(const CodeProduct& product) = nullptr;
  int some = 0;                  // rows, more than `few`, or 0
  Multiply some_rows = nullptr;  // may leave the other rows of the tile as they are
  // May be null, but then both are.
  void (*codes_of_tiles)(const Int8CodeTiles& tiles) = nullptr;
  // All rows times two right panels, the second of which is `panel_bytes` after the first. May be null.
  void (*two_panels)(int64_t groups, const uint8_t* a, const uint8_t* b, int64_t panel_bytes, const int32_t* of_rows,
                     const int32_t* of_columns, int32_t* c, int64_t ldc) = nullptr;
  // to[j] = the sum over the steps of |b[j] - zeros[j]|, of a right panel.
  void (*magnitudes)(int64_t groups, const uint8_t* b, const int32_t* zeros, int32_t* to) = nullptr;

  // Whether a left panel is also a right one.
  bool is_square() const { return tile_rows == tile_columns && left_k_group == k_group && !left_is_unsigned; }
};

inline constexpr int most_int8_tile_rows = 32, most_int8_tile_columns = 32;

extern const Int8Kernels int8_kernels_portable;
#if defined(__aarch64__)
extern const Int8Kernels int8_kernels_neon_dotprod, int8_kernels_neon_i8mm;
#elif defined(__x86_64__)
extern const Int8Kernels int8_kernels_avx2, int8_kernels_avx512_vnni, int8_kernels_amx;
#endif

// Those that this processor can run and best_isa() allows, worst to best.
std::vector<const Int8Kernels*> available_int8_kernels();

}  // namespace tenon::kernels
