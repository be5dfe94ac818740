// Convolutions in which every channel has its own window, of images whose channels come last.
#pragma once

#include <optional>

#include "cuda/convolution.h"
#include "ops/channels_last/cuda_depthwise_boxes.h"
#include "ops/cuda_support/epilogue.h"

namespace tenon::ops {

class CudaDepthwise {
 public:
  static bool takes(const cuda::ConvolutionShape& shape);

  // Tries how many pixels a thread or a block should have.
  CudaDepthwise(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue);
  // Inputs are those of a ChannelsLastConv.
  void run(KernelRun& run, bool weights_may_change) const;

 private:
  static CudaLoop loop_of(KernelRun& run, const cuda::ConvolutionShape& shape, const CudaEpilogue& epilogue,
                          int64_t pack, int64_t pixels);
  void run(KernelRun& run, const CudaLoop& loop) const;
  void turn(KernelRun& run) const { turn_->run(run, {run.input(1).raw(), weights_.get()}); }

  std::shared_ptr<void> weights_;
  std::optional<CudaLoop> turn_, loop_;
  std::optional<CudaDepthwiseBoxes> boxes_;  // instead of the loop
  std::shared_ptr<const size_t> chosen_;
};

}  // namespace tenon::ops
