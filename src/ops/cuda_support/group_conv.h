// Convolutions of images that have their channels last as products by groups of four warps (group_matmul.h): a window
// is a row of a matrix. The copy engine fetches a tap of many windows at a time.
#pragma once

#include "cuda/convolution.h"
#include "ops/cuda_support/group_matmul.h"

namespace tenon::ops {

class CudaGroupConvolution {
 public:
  // Two spatial axes, one group. Inputs are those of a ChannelsLastConv.
  static bool takes(KernelRun& run, const cuda::ConvolutionShape& shape);
  static std::vector<GroupMatMulTile> tiles(const cuda::ConvolutionShape& shape, int processors);

  CudaGroupConvolution(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue,
                       const GroupMatMulTile& tile);
  void run(KernelRun& run) const;

 private:
  cuda::ConvolutionShape shape_;
  GroupMatMulTile tile_;
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
