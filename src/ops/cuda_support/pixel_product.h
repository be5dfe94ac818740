// 1x1 convolutions of images whose channels come last, by tensor cores: products of a long matrix of pixels and a small
// one of weights, with all that follows done while results are stored.
#pragma once

#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/matmul_shape.h"

namespace tenon::ops {

class CudaPixelProduct {
 public:
  // Rows are pixels, and weights transposed. float16 and bfloat16, channels and outputs that are read 16 bytes at a
  // time. It pays where memory is the limit: for few channels, or if a library would leave something of the epilogue to
  // another pass.
  static bool takes(KernelRun& run, const MatMulShape& shape, bool leaves_rest);
  // Pixels that a block has, best guess first.
  static std::vector<int64_t> tiles(const MatMulShape& shape);

  CudaPixelProduct(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue, int64_t tile);
  // Inputs are those of a ChannelsLastConv.
  void run(KernelRun& run) const;

 private:
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
