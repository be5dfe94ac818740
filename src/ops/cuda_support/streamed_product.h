// 1x1 convolutions of few channels as products whose weights stay in shared memory while pixels stream by, on GPUs of
// compute capability 9.0, with all that follows done while results are stored.
#pragma once

#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/matmul_shape.h"

namespace tenon::ops {

class CudaStreamedProduct {
 public:
  // float16, bfloat16, and float that may be rounded to TF32; weights by rows of all channels of an output. Inputs are
  // those of a ChannelsLastConv.
  static bool takes(KernelRun& run, const MatMulShape& shape);

  CudaStreamedProduct(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue);
  void run(KernelRun& run) const;

 private:
  // What a group of four warps works on at a time, how many groups a block has, and how many pieces of pixels each of
  // them fetches ahead.
  struct Tile {
    int64_t rows, columns, groups, stages;
  };
  static Tile tile_of(const MatMulShape& shape, bool has_residual, int64_t processors);
  // The same with as many stages as there is shared memory for.
  static Tile with_stages(const MatMulShape& shape, Tile tile, bool has_residual);
  static int64_t shared_bytes(const MatMulShape& shape, const Tile& tile, bool has_residual);
  static CudaBlocks blocks_of(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue, const Tile& tile);

  MatMulShape shape_;
  Tile tile_;
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
