#include "ops/recurrent/cpu_weights.h"

#include <algorithm>

#include "kernels/gemm_any/gemm_any.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/requantize.h"
#include "kernels/scratch.h"

namespace tenon::ops {

void ByteWeights::multiply(ThreadPool& pool, int64_t m, const float* a, float* c, int64_t ldc, const float* addend,
                           int64_t addend_stride) const {
  const int64_t k = packed_->panels().k, n = packed_->panels().lanes;
  const kernels::ByteQuantization by = kernels::quantization_of(kernels::range_with_zero(a, m * k));
  const kernels::Scratch codes(static_cast<size_t>(m * k) + 1), products(static_cast<size_t>(n) * sizeof(float));
  kernels::quantize(a, codes.as<uint8_t>(), m * k, by.scale, by.zero);
  auto* scales = products.as<float>();
  for (int64_t j = 0; j < n; ++j) scales[j] = by.scale * scales_[scales_.size() == 1 ? 0 : static_cast<size_t>(j)];
  const auto zero = static_cast<int32_t>(by.zero);
  kernels::gemm_int8(
      &pool, m, {codes.as<uint8_t>(), false, k}, {&zero}, *packed_, nullptr, [&](const kernels::SumsBlock& block) {
        for (int64_t i = 0; i < block.rows; ++i) {
          const int64_t row = block.row + i;
          kernels::scale_rows({block.sums + i * block.ld, block.ld, 1, block.columns}, {scales + block.column, 1},
                              addend + row * addend_stride + block.column, c + row * ldc + block.column, ldc);
        }
      });
}

Weights<float>::Weights(ThreadPool& pool, const float* data, int64_t rows, int64_t k, PackedStorage& storage) {
  if (k > 0 && rows > 0)
    packed_.emplace(pool, kernels::GemmSide::right, k, rows, kernels::GemmMatrix{data, k, true}, storage);
}

namespace {

kernels::GemmEpilogue adding(const float* addend, int64_t stride) {
  kernels::GemmEpilogue epilogue;
  epilogue.addend = addend;
  epilogue.addend_row_stride = stride;
  epilogue.addend_column_stride = 1;
  return epilogue;
}

}  // namespace

void Weights<float>::multiply(ThreadPool& pool, int64_t m, const float* a, float* c, int64_t ldc, const float* addend,
                              int64_t addend_stride) const {
  if (bytes_) return bytes_->multiply(pool, m, a, c, ldc, addend, addend_stride);
  if (packed_) kernels::gemm(pool, m, {a, packed_->rows()}, *packed_, c, ldc, adding(addend, addend_stride));
}

void Weights<float>::multiply_columns(ThreadPool& pool, int64_t m, const float* a, int64_t first, int64_t last,
                                      float* c, int64_t ldc, const float* addend, int64_t addend_stride,
                                      bool backwards) const {
  if (bytes_) return bytes_->multiply(pool, m, a, c, ldc, addend, addend_stride);
  if (packed_)
    kernels::gemm_columns(m, {a, packed_->rows()}, *packed_, first, last, c, ldc, adding(addend, addend_stride),
                          backwards);
}

void Weights<double>::multiply(ThreadPool& pool, int64_t m, const double* a, double* c, int64_t ldc,
                               const double* addend, int64_t addend_stride) const {
  kernels::gemm_any<double>(pool, m, rows_, k_, {a, k_}, {data_, k_, true}, c, ldc);
  for (int64_t i = 0; addend && i < m; ++i) {
    for (int64_t j = 0; j < rows_; ++j) c[i * ldc + j] += addend[i * addend_stride + j];
  }
}

}  // namespace tenon::ops
