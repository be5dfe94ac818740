// Products of large matrices by groups of four warps, on GPUs of compute capability 9.0, with all that follows done
// while results are stored.
#pragma once

#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/matmul_shape.h"

namespace tenon::ops {

// How a block works. Two groups either have a tile each, and one finishes its own while the other multiplies, or half
// of a tile.
struct GroupMatMulTile {
  bool in_turn = true;
  int64_t rows_of_group = 128, columns = 128;

  int64_t rows() const { return in_turn ? rows_of_group : 2 * rows_of_group; }
};

class CudaGroupMatMul {
 public:
  // float16 and bfloat16, rows of all matrices that begin at multiples of 16 bytes. Inputs are those of a FusedMatMul.
  static bool takes(KernelRun& run, const MatMulShape& shape);
  // In turn where there is work for the whole GPU.
  static GroupMatMulTile tile(const MatMulShape& shape, int processors);

  CudaGroupMatMul(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue, const GroupMatMulTile& tile);
  void run(KernelRun& run) const;

 private:
  MatMulShape shape_;
  GroupMatMulTile tile_;
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
