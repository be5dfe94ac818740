#include "kernels/softmax/softmax.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

constexpr int64_t elements_per_task = 4096;

void each_row(ThreadPool& pool, void (*kernel)(const float*, float*, int64_t), const float* x, float* y, int64_t rows,
              int64_t n) {
  if (n <= 0) return;
  pool.parallel_for(rows, 1 + elements_per_task / n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernel(x + i * n, y + i * n, n);
  });
}

void each_block(ThreadPool& pool, void (*kernel)(const float*, float*, int64_t, int64_t, int64_t), const float* x,
                float* y, int64_t outer, int64_t n, int64_t inner) {
  if (n <= 0 || inner <= 0) return;
  constexpr int64_t most = most_softmax_columns;
  const int64_t blocks = (inner + most - 1) / most, grain = 1 + elements_per_task / (n * std::min(inner, most));
  pool.parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * most, at = i / blocks * n * inner + column;
      kernel(x + at, y + at, n, inner, std::min(most, inner - column));
    }
  });
}

}  // namespace

Isa softmax_isa() { return softmax_kernels().isa; }

void softmax_rows(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n) {
  each_row(pool, softmax_kernels().softmax_row, x, y, rows, n);
}

void log_softmax_rows(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n) {
  each_row(pool, softmax_kernels().log_softmax_row, x, y, rows, n);
}

void softmax_middle(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1) return softmax_rows(pool, x, y, outer, n);
  each_block(pool, softmax_kernels().softmax_columns, x, y, outer, n, inner);
}

void log_softmax_middle(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1) return log_softmax_rows(pool, x, y, outer, n);
  each_block(pool, softmax_kernels().log_softmax_columns, x, y, outer, n, inner);
}

}  // namespace tenon::kernels
