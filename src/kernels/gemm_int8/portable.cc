#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 16;

// The left panel has `Lanes`.
template <int Rows, int Lanes = rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, const int32_t* of_rows, const int32_t* of_columns,
              int32_t* c, int64_t ldc) {
  uint32_t acc[Rows][columns] = {};
  for (int64_t p = 0; p < groups; ++p, a += Lanes, b += columns) {
    int16_t row[columns];
    for (int j = 0; j < columns; ++j) row[j] = static_cast<int8_t>(b[j]);
    for (int i = 0; i < Rows; ++i) {
      const int16_t value = static_cast<int8_t>(a[i]);
      for (int j = 0; j < columns; ++j) acc[i][j] += static_cast<uint32_t>(value * row[j]);
    }
  }
  for (int i = 0; i < Rows; ++i, c += ldc) {
    for (int j = 0; j < columns; ++j)
      c[j] = static_cast<int32_t>(acc[i][j] + static_cast<uint32_t>(of_rows[i]) + static_cast<uint32_t>(of_columns[j]));
  }
}

// As fast as the kernel itself on a tile in the first cache: what a compiler makes of it is all there is to compare.
int32_t multiply_tile(int64_t steps, const uint8_t* codes) {
  constexpr int32_t zero[columns] = {};
  int32_t tile[rows * columns], sum = 0;
  for (int64_t step = 0; step < steps; ++step) {
    multiply<rows>(8, codes, codes, zero, zero, tile, columns);
    sum ^= tile[0];
  }
  return sum;
}

}  // namespace

constexpr Int8Kernels int8_kernels_portable = {
    "portable",   rows, columns, 1, 1, false, 1, multiply<rows>, 2, multiply<2>, multiply<1, 1>, 2 * rows* columns * 8,
    multiply_tile};

}  // namespace tenon::kernels
