// Multiplication of floats that are rounded to bfloat16 first; sums are floats.
#pragma once

#include <cstdint>

#include "base/packed_storage.h"
#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm_bf16/tile.h"

namespace tenon::kernels {

// Those that are faster than products of floats; null where this processor has none.
const Bf16Kernels* fast_bf16_kernels();

// A constant right side, rounded and rearranged; owns its memory.
class PackedBf16Matrix {
 public:
  // `rows` and `columns` of the matrix as used, after transposition.
  PackedBf16Matrix(ThreadPool& pool, int64_t rows, int64_t columns, GemmMatrix matrix, const Bf16Kernels& kernels,
                   PackedStorage& storage = fresh_storage());

  int64_t rows() const { return k_; }
  int64_t columns() const { return columns_; }
  size_t bytes() const { return buffer_.size(); }
  const Bf16Kernels& kernels() const { return *kernels_; }
  const uint16_t* panel(int64_t index) const {
    return buffer_.as<uint16_t>() + index * steps_ * kernels_->tile_columns;
  }

 private:
  const Bf16Kernels* kernels_;
  int64_t k_, columns_;
  int64_t steps_;  // k, up to whole groups of the left side
  PackedBuffer buffer_;
};

// c[m, n] = epilogue(a[m, k] * b[k, n]); `a` is not transposed, rows of c are ldc floats apart.
void gemm_bf16(ThreadPool& pool, int64_t m, GemmMatrix a, const PackedBf16Matrix& b, float* c, int64_t ldc,
               const GemmEpilogue& epilogue = {});

}  // namespace tenon::kernels
