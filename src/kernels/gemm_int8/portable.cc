#include "kernels/gemm_int8/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 16;

// The left panel has `Lanes`.
template <int Rows, int Lanes = rows>
void multiply(int64_t groups, const uint8_t* a, const uint8_t* b, int32_t* tile) {
  uint32_t acc[Rows][columns] = {};
  for (int64_t p = 0; p < groups; ++p, a += Lanes, b += columns) {
    int16_t row[columns];
    for (int j = 0; j < columns; ++j) row[j] = static_cast<int8_t>(b[j]);
    for (int i = 0; i < Rows; ++i) {
      const int16_t value = static_cast<int8_t>(a[i]);
      for (int j = 0; j < columns; ++j) acc[i][j] += static_cast<uint32_t>(value * row[j]);
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < columns; ++j) tile[i * columns + j] = static_cast<int32_t>(acc[i][j]);
  }
}

}  // namespace

constexpr Int8Kernels int8_kernels_portable = {"portable", rows, columns,        1,           1,
                                               false,      1,    multiply<rows>, multiply<2>, multiply<1, 1>};

}  // namespace tenon::kernels
