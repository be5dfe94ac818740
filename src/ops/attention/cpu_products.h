// What the attention operators are made of.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm_any/gemm_any.h"
#include "kernels/softmax/softmax.h"

namespace tenon::ops {

// c = alpha * a * b, b transposed when told; rows are ld elements apart.
inline void multiply(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                     int64_t ldb, bool transposed, float* c, int64_t ldc, float alpha) {
  kernels::GemmEpilogue epilogue;
  epilogue.alpha = alpha;
  kernels::gemm(pool, m, n, k, {a, lda}, {b, ldb, transposed}, c, ldc, epilogue);
}

inline void multiply(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                     int64_t ldb, bool transposed, double* c, int64_t ldc, double alpha) {
  kernels::gemm_any<double>(pool, m, n, k, {a, lda}, {b, ldb, transposed}, c, ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] *= alpha;
  }
}

// A row of n > 0 weights; y may be x.
inline void softmax(const float* x, float* y, int64_t n) { kernels::softmax_kernels().softmax_row(x, y, n); }

inline void softmax(const double* x, double* y, int64_t n) {
  double most = *std::max_element(x, x + n), sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

}  // namespace tenon::ops
