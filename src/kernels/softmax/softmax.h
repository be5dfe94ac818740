// Softmax of float arrays.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

// The instruction set softmax uses now.
Isa softmax_isa();

// Each of `rows` rows of n contiguous floats becomes exp(x) / sum(exp(x)), or the logarithm of that; y may be x.
void softmax_rows(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n);
void log_softmax_rows(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n);

// The same over the middle axis of [outer, n, inner]; y may be x.
void softmax_middle(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner);
void log_softmax_middle(ThreadPool& pool, const float* x, float* y, int64_t outer, int64_t n, int64_t inner);

inline constexpr int64_t most_softmax_columns = 256;

struct SoftmaxKernels {
  Isa isa;
  void (*softmax_row)(const float* x, float* y, int64_t n);
  void (*log_softmax_row)(const float* x, float* y, int64_t n);
  // Columns that are neighbours, most_softmax_columns at most, of n rows that are `stride` apart.
  void (*softmax_columns)(const float* x, float* y, int64_t n, int64_t stride, int64_t columns);
  void (*log_softmax_columns)(const float* x, float* y, int64_t n, int64_t stride, int64_t columns);
};

TENON_WIDE_ISA_TABLES(SoftmaxKernels, softmax_kernels)

}  // namespace tenon::kernels
