// The first convolution of a network, on images of few channels that come last, by groups of four warps, on GPUs of
// compute capability 9.0.
#pragma once

#include <optional>

#include "cuda/convolution.h"
#include "ops/cuda_support/epilogue.h"

namespace tenon::ops {

// A first convolution of lines of whole 16 bytes, without a residual; float16, bfloat16, and float that may be rounded
// to TF32.
class CudaGroupFirstConvolution {
 public:
  static bool takes(KernelRun& run, const cuda::ConvolutionShape& shape);

  CudaGroupFirstConvolution(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue);
  // Inputs are those of a ChannelsLastConv.
  void run(KernelRun& run, bool weights_may_change) const;

 private:
  void turn(KernelRun& run) const { turn_->run(run, {run.input(1).raw(), weights_.get()}); }

  std::shared_ptr<void> weights_;  // in the order in which they are multiplied
  std::optional<CudaLoop> turn_;
  std::optional<CudaBlocks> blocks_;
};

}  // namespace tenon::ops
