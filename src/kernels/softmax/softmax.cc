#include "kernels/softmax/softmax.h"

#include <algorithm>

#include "kernels/math/math.h"

namespace tenon::kernels {
namespace {

constexpr int64_t elements_per_task = 4096;
constexpr int64_t columns_at_once = 256;

void each_row(ThreadPool& pool, void (*kernel)(const float*, float*, int64_t), const float* x, float* y, int64_t rows,
              int64_t n) {
  if (n <= 0) return;
  pool.parallel_for(rows, 1 + elements_per_task / n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernel(x + i * n, y + i * n, n);
  });
}

// A block of neighbouring columns, each a softmax of its own.
void softmax_columns(const float* x, float* y, int64_t n, int64_t stride, int64_t columns, bool logarithm) {
  float highest[columns_at_once], sum[columns_at_once], terms[columns_at_once];
  std::copy(x, x + columns, highest);
  std::fill(sum, sum + columns, 0.0f);
  for (int64_t i = 1; i < n; ++i) {
    const float* row = x + i * stride;
    for (int64_t j = 0; j < columns; ++j) highest[j] = row[j] > highest[j] ? row[j] : highest[j];
  }
  for (int64_t i = 0; i < n; ++i) {
    const float* row = x + i * stride;
    for (int64_t j = 0; j < columns; ++j) terms[j] = row[j] - highest[j];
    f32_exp(terms, terms, columns);
    for (int64_t j = 0; j < columns; ++j) sum[j] += terms[j];
    if (!logarithm) std::copy(terms, terms + columns, y + i * stride);
  }
  if (logarithm) f32_log(sum, sum, columns);
  for (int64_t i = 0; i < n; ++i) {
    const float* row = x + i * stride;
    float* to = y + i * stride;
    if (logarithm) {
      for (int64_t j = 0; j < columns; ++j) to[j] = (row[j] - highest[j]) - sum[j];
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] /= sum[j];
    }
  }
}

void each_block(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner, bool logarithm) {
  if (n <= 0 || inner <= 0) return;
  const int64_t blocks = (inner + columns_at_once - 1) / columns_at_once;
  const int64_t grain = 1 + elements_per_task / (n * std::min(inner, columns_at_once));
  pool.parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * columns_at_once;
      const int64_t at = i / blocks * n * inner + column;
      softmax_columns(x + at, y + at, n, inner, std::min(columns_at_once, inner - column), logarithm);
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
  each_block(pool, x, y, outer, n, inner, false);
}

void log_softmax_middle(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1) return log_softmax_rows(pool, x, y, outer, n);
  each_block(pool, x, y, outer, n, inner, true);
}

}  // namespace tenon::kernels
