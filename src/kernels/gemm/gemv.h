// A few rows times a matrix, reading the matrix once and where it is.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/tile.h"

namespace tenon::kernels {

// Element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct StridedRows {
  T* data;
  int64_t row_stride;
  int64_t column_stride;
};

inline constexpr int64_t most_gemv_rows = 8;

// out[m, n] = epilogue(x[m, k] * b[k, n]), m at most most_gemv_rows.
// With `pool` null it runs in the calling thread.
void gemv(ThreadPool* pool, const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, StridedRows<const float> x,
          GemmMatrix b, StridedRows<float> out, const GemmEpilogue& epilogue);

}  // namespace tenon::kernels
