#include "kernels/gemm_int8/tile.h"
#include "kernels/gemm_int8/vnni_rows.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 12, sums_at_once = 16;

// Sums of half the rows and both panels fill the registers.
void multiply_two_panels(int64_t groups, const uint8_t* a, const uint8_t* b, int64_t panel_bytes,
                         const int32_t* of_rows, const int32_t* of_columns, int32_t* c, int64_t ldc) {
  constexpr int half = rows / 2;
  for (int row = 0; row < rows; row += half)
    multiply_panels<half, rows, 2>(groups, a + 4 * row, b, panel_bytes, of_rows + row, of_columns, c + row * ldc, ldc);
}

int32_t multiply_registers(int64_t steps, const uint8_t* codes) {
  __m512i acc[sums_at_once];
#pragma GCC unroll 16
  for (int i = 0; i < sums_at_once; ++i) acc[i] = _mm512_set1_epi32(i);  // or one would do for all
  const __m512i a = _mm512_loadu_si512(codes), b = _mm512_loadu_si512(codes + 64);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < sums_at_once; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], a, b);
  }
  __m512i sum = acc[0];
#pragma GCC unroll 16
  for (int i = 1; i < sums_at_once; ++i) sum = _mm512_add_epi32(sum, acc[i]);
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, sum);
  return lanes[0];
}

}  // namespace

constexpr Int8Kernels int8_kernels_avx512_vnni = {.name = "avx512_vnni",
                                                  .tile_rows = rows,
                                                  .tile_columns = vnni_columns,
                                                  .k_group = 4,
                                                  .left_k_group = 4,
                                                  .left_is_unsigned = true,
                                                  .row_lanes = 1,
                                                  .all_rows = multiply_rows<rows, rows>,
                                                  .few = 4,
                                                  .few_rows = multiply_rows<4, rows>,
                                                  .one_row = multiply_rows<1, 1>,
                                                  .peak_operations = 128 * sums_at_once,
                                                  .peak = multiply_registers,
                                                  .pack_whole_columns = pack_whole_columns,
                                                  .some = 8,
                                                  .some_rows = multiply_rows<8, rows>,
                                                  .two_panels = multiply_two_panels};

}  // namespace tenon::kernels
