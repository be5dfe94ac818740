// What a GEMM micro-kernel gets: packed panels in, one tile of C out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// What happens to the product of one tile. `c` and `addend` point at the tile's first element.
struct GemmTile {
  float* c;
  int64_t ldc;
  int columns;
  float alpha;
  bool accumulate;  // c += alpha * product; otherwise c = alpha * product + beta * addend
  float beta;
  const float* addend;  // may be null, may be c
  int64_t addend_row_stride;
  int64_t addend_column_stride;
  const float* residual;  // added too, where it is not null; rows are ldc apart
  bool clamp;             // to [lo, hi] afterwards; NaN stays NaN
  float lo;
  float hi;
  const std::byte* ahead;  // what the next tiles read: step p of k brings ahead[p * ahead_step] near
  int64_t ahead_step;
};

// A B panel: row p, tile_columns floats, is at data + p * stride. Or rows of A.
struct GemmPanel {
  const float* data;
  int64_t stride;
};

// Multiplies k columns of an A panel (each as many floats as the tile has rows) with k rows of a B panel and finishes
// the tile.
using GemmTileKernel = void (*)(int64_t k, const float* a, const GemmPanel& b, const GemmTile& tile);

// The same with the rows of the left side where they are, as many as a tile has: row i is at a.data + i * a.stride.
using GemmRowsKernel = void (*)(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& tile);

// The same with a left side that is transposed, where it is: step p, all rows of the tile, is at a.data + p * a.stride.
using GemmStepsKernel = void (*)(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& tile);

// The same as of rows, and packs these: tiles to the right read them so.
using GemmRowsToPackKernel = void (*)(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& tile,
                                      float* packed);

// The same for some tiles side by side, of the same A panel. Row p of the B panels is at b + offsets[p]. Of `tile`,
// `columns` is for the last one.
using GemmTilesKernel = void (*)(int64_t k, const float* a, const float* b, const int64_t* offsets, int64_t tiles,
                                 const GemmTile& tile);

// The same for one row and some B panels that lie `panel_step` floats apart, each with rows one after the other: of one
// panel alone, sums would wait for each other. Of `tile`, `columns` is for the last one.
using GemmRowKernel = void (*)(int64_t k, const float* a, const float* b, int64_t panel_step, const GemmTile& tile);

inline constexpr int most_tile_rows = 16, most_panels_at_once = 8;

// Rows of half a tile, of which there are two where a full one would leave one or two rows: sums of so few wait for
// each other.
inline constexpr int half_rows = 8;

// y[r * ldy + 0..n) += sum over i < 4 of x[r * ldx + i] * b[i * ldb + 0..n).
using GemvKernel = void (*)(const float* x, int64_t ldx, const float* b, int64_t ldb, float* y, int64_t ldy, int64_t n);

inline constexpr int most_gemv_rows_at_once = 4;

// Tiles of products of which neither side is packed: so many rows, and up to so many vectors of columns.
inline constexpr int unpacked_rows = 6, most_unpacked_vectors = 4;

struct GemmKernels {
  Isa isa;
  int tile_rows;
  int tile_columns;
  int narrow_columns;
  // By the number of rows, 1..tile_rows; [0] is not used.
  GemmTileKernel by_rows[most_tile_rows + 1];
  GemmRowsKernel rows_in_place;                        // null where it would be slower
  GemmRowsKernel halves_in_place[2];                   // the same for half_rows and half_rows - 1 rows, or null
  bool reads_many_columns_in_place;                    // whether it is as fast as `by_rows` for any number of columns
  GemmRowsToPackKernel rows_to_pack;                   // null where it would be slower than packing them before
  int64_t most_steps_in_place;                         // beyond which packing the left side is faster; may be 0
  GemmStepsKernel steps_in_place[most_tile_rows + 1];  // by the number of rows; null where there are no such steps
  GemmTilesKernel tiles_by_rows[most_tile_rows + 1];
  GemmTilesKernel narrow_tiles_by_rows[most_tile_rows + 1];  // of narrow_columns each
  // Copies k steps of so many full B panels, whose columns lie side by side in rows that are ld floats apart.
  void (*pack_columns)(const float* b, int64_t ld, int64_t panels, int64_t k, float* out);
  // The same of one panel whose columns are rows, ld floats apart; null where it is no faster than portable code.
  void (*pack_transposed_columns)(const float* b, int64_t ld, int64_t k, float* out);
  // Packs k steps of a full A panel whose rows are ld floats apart; null where that is no faster either.
  void (*pack_rows)(const float* a, int64_t ld, int64_t k, float* out);
  // y[2 * i] = a[i] and y[2 * i + 1] = b[i] for i < n.
  void (*interleave)(const float* a, const float* b, int64_t n, float* y);
  int panels_at_once;
  GemmRowKernel row_of_panels[most_panels_at_once + 1];  // by their number, 1..panels_at_once; [0] is not used
  // By the number of rows of x and y, 1..most_gemv_rows_at_once; [0] is not used.
  GemvKernel add_4_rows[most_gemv_rows_at_once + 1];
  // y[i] = dot product of x with b[i * ldb + 0..k), for i < 4.
  void (*dot_4_rows)(const float* x, const float* b, int64_t ldb, float* y, int64_t k);
  // unpacked_rows rows and all rows of B where they are, by the number of vectors, 1..most_unpacked_vectors; null where
  // it would be slower than to pack them.
  GemmRowsKernel unpacked[most_unpacked_vectors + 1];
  int vector_width;
};

TENON_ISA_TABLES(GemmKernels, gemm_kernels)

// The table of one instruction set, which this processor must have.
const GemmKernels& gemm_kernels_of(Isa isa);

}  // namespace tenon::kernels
