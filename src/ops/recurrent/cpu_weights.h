// What the CPU kernels of recurrent operators multiply activations with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm_int8/gemm_int8.h"

namespace tenon::ops {

// Weights [k, n] of bytes, whose scales are one or one for each column. Rows that they are multiplied with become bytes
// too, with one scale for all.
class ByteWeights {
 public:
  ByteWeights(const kernels::PackedBytes& packed, std::vector<float> scales)
      : packed_(&packed), scales_(std::move(scales)) {}
  // c = a * weights + addend, whose rows are `addend_stride` apart.
  void multiply(ThreadPool& pool, int64_t m, const float* a, float* c, int64_t ldc, const float* addend,
                int64_t addend_stride) const;

 private:
  const kernels::PackedBytes* packed_;
  std::vector<float> scales_;
};

// Weights [rows, k] that activations [m, k] are multiplied with, transposed.
template <typename T>
class Weights;

template <>
class Weights<float> {
 public:
  Weights() = default;
  Weights(ThreadPool& pool, const float* data, int64_t rows, int64_t k, PackedStorage& storage);
  explicit Weights(ByteWeights bytes) : bytes_(std::move(bytes)) {}
  // c = a * weights^T + addend, whose rows are `addend_stride` apart.
  void multiply(ThreadPool& pool, int64_t m, const float* a, float* c, int64_t ldc, const float* addend,
                int64_t addend_stride) const;
  // The same for the columns [first, last) of packed weights, in the calling thread; c and the addend, which may be
  // null, are those of column `first` on. Other weights have all their columns multiplied. Steps that take turns with
  // `backwards` find weights in a cache.
  void multiply_columns(ThreadPool& pool, int64_t m, const float* a, int64_t first, int64_t last, float* c, int64_t ldc,
                        const float* addend, int64_t addend_stride, bool backwards) const;

  size_t bytes() const { return packed_ ? packed_->bytes() : 0; }

 private:
  std::optional<kernels::PackedMatrix> packed_;
  std::optional<ByteWeights> bytes_;
};

template <>
class Weights<double> {
 public:
  Weights() = default;
  Weights(ThreadPool&, const double* data, int64_t rows, int64_t k, PackedStorage&) : data_(data), rows_(rows), k_(k) {}
  void multiply(ThreadPool& pool, int64_t m, const double* a, double* c, int64_t ldc, const double* addend,
                int64_t addend_stride) const;
  void multiply_columns(ThreadPool& pool, int64_t m, const double* a, int64_t, int64_t, double* c, int64_t ldc,
                        const double* addend, int64_t addend_stride, bool) const {
    multiply(pool, m, a, c, ldc, addend, addend_stride);
  }

 private:
  const double* data_ = nullptr;
  int64_t rows_ = 0, k_ = 0;
};

}  // namespace tenon::ops
