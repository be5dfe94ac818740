// The first convolution of a network, on images of few channels that come last, by tensor cores.
#pragma once

#include <optional>

#include "cuda/convolution.h"
#include "ops/cuda_support/epilogue.h"

namespace tenon::ops {

// Up to four channels, every other column, windows of up to eight rows and columns, up to 64 outputs.
bool is_first_convolution(KernelRun& run, const cuda::ConvolutionShape& shape);

// A first convolution of float16 and bfloat16.
class CudaFirstConvolution {
 public:
  static bool takes(KernelRun& run, const cuda::ConvolutionShape& shape);

  CudaFirstConvolution(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue);
  // Inputs are those of a ChannelsLastConv.
  void run(KernelRun& run, bool weights_may_change) const;

 private:
  void turn(KernelRun& run) const { turn_->run(run, {run.input(1).raw(), weights_.get()}); }

  std::shared_ptr<void> weights_;  // in the order in which they are read
  std::optional<CudaLoop> turn_;
  std::optional<CudaBlocks> blocks_;
};

}  // namespace tenon::ops
