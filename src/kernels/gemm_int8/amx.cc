#include <immintrin.h>

#include "kernels/amx_code_products.h"
#include "kernels/gemm_int8/tile.h"
#include "kernels/gemm_int8/vnni_rows.h"

namespace tenon::kernels {
namespace {

// Registers 0 to 3 hold sums, 4 and 5 codes of the left side, 6 and 7 those of the right.
constexpr int rows = 32, columns = vnni_columns, register_rows = 16, register_bytes = 64;

// c = sums that are there + of_rows + of_columns.
template <int Rows>
void add_to_tile(const int32_t* of_rows, const int32_t* of_columns, int32_t* c, int64_t ldc) {
  const __m512i first = _mm512_loadu_si512(of_columns), second = _mm512_loadu_si512(of_columns + 16);
  for (int i = 0; i < Rows; ++i, c += ldc) {
    const __m512i row = _mm512_set1_epi32(of_rows[i]);
    _mm512_storeu_si512(c, _mm512_add_epi32(_mm512_loadu_si512(c), _mm512_add_epi32(row, first)));
    _mm512_storeu_si512(c + 16, _mm512_add_epi32(_mm512_loadu_si512(c + 16), _mm512_add_epi32(row, second)));
  }
}

// Rows are 16 or 32.
template <int Rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  constexpr int groups_per_step = register_bytes / 4, right_stride = 4 * columns;
  constexpr bool both = Rows > register_rows;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (both) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t p = 0; p < groups; p += groups_per_step) {
    _tile_loadd(4, a, register_bytes);
    _tile_loadd(6, b, right_stride);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + register_bytes, right_stride);
    _tile_dpbusd(1, 4, 7);
    if constexpr (both) {
      _tile_loadd(5, a + register_rows * register_bytes, register_bytes);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
    a += rows * register_bytes;
    b += groups_per_step * right_stride;
  }
  const auto stride = static_cast<size_t>(ldc) * sizeof(int32_t);
  _tile_stored(0, c, stride);
  _tile_stored(1, c + columns / 2, stride);
  if constexpr (both) {
    _tile_stored(2, c + register_rows * ldc, stride);
    _tile_stored(3, c + register_rows * ldc + columns / 2, stride);
  }
  add_to_tile<Rows>(of_rows, of_columns, c, ldc);
}

// Adds of_rows to sums that are there.
void add_to_rows(const Int8Tile& tile) {
  const int count = tile.few ? register_rows : rows;
  int32_t* c = tile.c;
  for (int i = 0; i < count; ++i, c += tile.ldc) {
    const __m512i row = _mm512_set1_epi32(tile.of_rows[i]);
    _mm512_storeu_si512(c, _mm512_add_epi32(_mm512_loadu_si512(c), row));
    _mm512_storeu_si512(c + 16, _mm512_add_epi32(_mm512_loadu_si512(c + 16), row));
  }
}

// The sums of the last tile leave the registers; it had all rows, or few.
template <bool Few>
void store_sums(const Int8Tile& tile) {
  const auto stride = static_cast<size_t>(tile.ldc) * sizeof(int32_t);
  _tile_stored(0, tile.c, stride);
  _tile_stored(1, tile.c + columns / 2, stride);
  if constexpr (!Few) {
    _tile_stored(2, tile.c + register_rows * tile.ldc, stride);
    _tile_stored(3, tile.c + register_rows * tile.ldc + columns / 2, stride);
  }
}

constexpr int groups_per_step = register_bytes / 4, right_stride = 4 * columns, half = columns / 2;

// The steps of a tile after its first one.
template <bool Few>
void multiply_rest(int64_t steps, const Int8Tile& tile) {
  const uint8_t *a = tile.a, *b = tile.b;
  const int64_t step_stride = tile.step_stride, second = register_rows * tile.row_stride;
  const auto stride = static_cast<size_t>(tile.row_stride);
  for (int64_t step = 1; step < steps; ++step) {
    a += step_stride;
    b += groups_per_step * right_stride;
    _tile_stream_loadd(4, a, stride);
    _tile_loadd(6, b, right_stride);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + register_bytes, right_stride);
    _tile_dpbusd(1, 4, 7);
    if constexpr (!Few) {
      _tile_stream_loadd(5, a + second, stride);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
}

// Sums of the tile before leave the registers between the first products of this one. Both have all rows.
void store_and_begin(const Int8Tile& before, const Int8Tile& tile) {
  const auto stride = static_cast<size_t>(tile.row_stride), sums_stride = static_cast<size_t>(before.ldc) * 4;
  // Rows that are no bytes apart are all the same.
  _tile_stream_loadd(4, tile.a, stride);
  _tile_loadd(6, tile.b, right_stride);
  _tile_stored(0, before.c, sums_stride);
  _tile_loadd(0, tile.of_columns, 0);
  _tile_dpbusd(0, 4, 6);
  _tile_loadd(7, tile.b + register_bytes, right_stride);
  _tile_stored(1, before.c + half, sums_stride);
  _tile_loadd(1, tile.of_columns + half, 0);
  _tile_dpbusd(1, 4, 7);
  _tile_stream_loadd(5, tile.a + register_rows * tile.row_stride, stride);
  _tile_stored(2, before.c + register_rows * before.ldc, sums_stride);
  _tile_loadd(2, tile.of_columns, 0);
  _tile_dpbusd(2, 5, 6);
  _tile_stored(3, before.c + register_rows * before.ldc + half, sums_stride);
  _tile_loadd(3, tile.of_columns + half, 0);
  _tile_dpbusd(3, 5, 7);
}

template <bool Few>
void begin(const Int8Tile& tile) {
  const auto stride = static_cast<size_t>(tile.row_stride);
  _tile_loadd(0, tile.of_columns, 0);
  _tile_loadd(1, tile.of_columns + half, 0);
  _tile_stream_loadd(4, tile.a, stride);
  _tile_loadd(6, tile.b, right_stride);
  _tile_dpbusd(0, 4, 6);
  _tile_loadd(7, tile.b + register_bytes, right_stride);
  _tile_dpbusd(1, 4, 7);
  if constexpr (!Few) {
    _tile_loadd(2, tile.of_columns, 0);
    _tile_loadd(3, tile.of_columns + half, 0);
    _tile_stream_loadd(5, tile.a + register_rows * tile.row_stride, stride);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
}

// Tiles are not copied: reading several of their numbers at once, so soon after they were written one by one, would
// wait for all stores before, and so for the products.
void multiply_all(int64_t groups, Int8Tiles& tiles) {
  const int64_t steps = groups / groups_per_step;
  Int8Tile both[2] = {};
  for (int turn = 0;; turn ^= 1) {
    Int8Tile &tile = both[turn], &before = both[1 - turn];
    const bool is_first = before.c == nullptr, is_end = !tiles.next(tile);
    if (!is_first && !is_end && !before.few && !tile.few) {
      store_and_begin(before, tile);
    } else {
      if (!is_first) before.few ? store_sums<true>(before) : store_sums<false>(before);
      if (!is_end) tile.few ? begin<true>(tile) : begin<false>(tile);
    }
    if (!is_first && before.of_rows) add_to_rows(before);
    if (is_end) return;
    tile.few ? multiply_rest<true>(steps, tile) : multiply_rest<false>(steps, tile);
  }
}

int32_t multiply_registers(int64_t steps, const uint8_t* codes) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, codes, 4);
  _tile_loadd(6, codes + 64, 4);
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 6);
    _tile_dpbusd(2, 4, 6);
    _tile_dpbusd(3, 4, 6);
  }
  int32_t sums[register_rows * register_rows];
  _tile_stored(0, sums, register_bytes);
  return sums[0];
}

}  // namespace

constexpr Int8Kernels int8_kernels_amx = {"amx",
                                          rows,
                                          columns,
                                          4,
                                          register_bytes,
                                          true,
                                          1,
                                          multiply<rows>,
                                          register_rows,
                                          multiply<register_rows>,
                                          multiply_rows<1, 1>,
                                          4 * 2 * register_rows* register_rows* register_bytes,
                                          multiply_registers,
                                          enter_amx,
                                          leave_amx,
                                          pack_whole_columns,
                                          multiply_all,
                                          multiply_codes};
static_assert(rows == code_tile_rows && columns == code_tile_columns && register_bytes == code_step_bytes);

}  // namespace tenon::kernels
