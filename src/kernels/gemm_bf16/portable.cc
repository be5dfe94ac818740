#include "kernels/gemm_bf16/bf16.h"
#include "kernels/gemm_bf16/pack_kernel.h"
#include "kernels/gemm_bf16/tile.h"

namespace tenon::kernels {
namespace {

constexpr int rows = 4, columns = 4;

struct Convert {
  static constexpr int group_size = 2;
  static void group(const float* from, uint16_t* to) {
    for (int i = 0; i < group_size; ++i) to[i] = to_bf16(from[i]);
  }
};

template <int Rows>
void multiply(int64_t k, const uint16_t* a, const uint16_t* b, float* tile) {
  float sums[Rows][columns] = {};
  for (int64_t p = 0; p < k;
       p += Convert::group_size, a += Convert::group_size * rows, b += Convert::group_size * columns) {
    for (int i = 0; i < Rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        for (int q = 0; q < Convert::group_size; ++q)
          sums[i][j] += from_bf16(a[i * Convert::group_size + q]) * from_bf16(b[j * Convert::group_size + q]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < columns; ++j) tile[i * columns + j] = sums[i][j];
  }
}

}  // namespace

constexpr Bf16Kernels bf16_kernels_portable = {"portable",
                                               rows,
                                               columns,
                                               Convert::group_size,
                                               Convert::group_size,
                                               multiply<rows>,
                                               multiply<rows / 2>,
                                               pack_bf16_rows<Convert, rows>};

}  // namespace tenon::kernels
