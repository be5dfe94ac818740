#include "kernels/gemm_int8/tile.h"
#include "kernels/gemm_int8/vnni_rows.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 8, sums_at_once = 16;

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

constexpr Int8Kernels int8_kernels_avx512_vnni = {"avx512_vnni",
                                                  rows,
                                                  vnni_columns,
                                                  4,
                                                  4,
                                                  true,
                                                  1,
                                                  multiply_rows<rows, rows>,
                                                  2,
                                                  multiply_rows<2, rows>,
                                                  multiply_rows<1, 1>,
                                                  128 * sums_at_once,
                                                  multiply_registers,
                                                  nullptr,
                                                  nullptr,
                                                  pack_whole_columns};

}  // namespace tenon::kernels
