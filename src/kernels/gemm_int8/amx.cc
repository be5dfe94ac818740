#include <immintrin.h>

#include "kernels/amx_tiles.h"
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
                                          leave_amx};

}  // namespace tenon::kernels
