// Products of matrices of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/gemm_int8/gemm_int8.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {

// One multiplication per matrix of the broadcast batch.
struct MatrixBatch {
  int64_t m, n, k, count = 1;
  std::vector<int64_t> sizes, a_strides, b_strides;  // in matrices; 0 where broadcast

  MatrixBatch(const Shape& a, const Shape& b);
  // Which matrices of A and B make matrix i.
  std::pair<int64_t, int64_t> at(int64_t i) const;
};

// One parameter for all matrices, one for each line (row of A or column of B) of every matrix, or one for each line of
// each matrix.
struct LineParameters {
  std::vector<float> values;

  LineParameters() : values{0} {}
  LineParameters(const Tensor& tensor, int64_t lines, int64_t all_lines, const char* name);
  // Those of A's rows or B's columns; zero where the input is left out.
  static LineParameters of_rows(const KernelRun& run, size_t input, const MatrixBatch& batch, const char* name);
  static LineParameters of_columns(const KernelRun& run, size_t input, size_t b_input, const MatrixBatch& batch,
                                   const char* name);

  // Line `line` of all lines, those of the matrices before included.
  float at(int64_t line) const { return values[static_cast<size_t>(line) % values.size()]; }
  std::vector<int32_t> whole() const { return {values.begin(), values.end()}; }
};

// Of A, which is input 0, and B, which is packed ahead where it is constant.
class ByteProduct {
 public:
  ByteProduct(const NodeInfo& info, size_t b_input, size_t b_zero_input);

  bool is_packed() const { return packed_ != nullptr; }
  // Adds `bias`, one for each column, unless it is null. Rows of the blocks that `finish` gets count those of the
  // matrices before.
  void multiply(KernelRun& run, const MatrixBatch& batch, const LineParameters& a_zero, const LineParameters& b_zero,
                const int32_t* bias, kernels::FinishSums finish) const;

 private:
  struct Packed {
    std::vector<kernels::PackedBytes> matrices;  // of B

    size_t bytes() const;
  };

  size_t b_input_;
  std::shared_ptr<const Packed> packed_;
};

}  // namespace tenon::ops
