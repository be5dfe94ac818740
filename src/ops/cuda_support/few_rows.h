// Products of a few rows and a matrix, which are bound by how fast the matrix is read.
#pragma once

#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/matmul_shape.h"

namespace tenon::ops {

class CudaFewRows {
 public:
  // Rows of float32, float16 and bfloat16 that begin at multiples of 16 bytes. Inputs are those of a FusedMatMul.
  static bool takes(KernelRun& run, const MatMulShape& shape);

  CudaFewRows(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue);
  void run(KernelRun& run) const;

 private:
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
