// Depthwise convolutions of floats and of half precision on GPUs of compute capability 9.0, whose copy engine fetches
// the part of an image that a block needs, with zeros around it.
#pragma once

#include "cuda/convolution.h"
#include "cuda/tensor_map.h"
#include "ops/cuda_support/epilogue.h"

namespace tenon::ops {

class CudaDepthwiseBoxes {
 public:
  static bool takes(KernelRun& run, const cuda::ConvolutionShape& shape);
  // Rows of the result that a block may have, those that may be the fastest.
  static std::vector<int64_t> rows(KernelRun& run, const cuda::ConvolutionShape& shape);

  CudaDepthwiseBoxes(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue, int64_t rows);
  // `weights`: those of each tap side by side.
  void run(KernelRun& run, const void* weights) const;

 private:
  std::vector<int64_t> sizes_, box_;  // channels first
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
