// Convolutions, by cuDNN.
#pragma once

#include <optional>

#include "cuda/gpu.h"

namespace tenon::cuda {

struct ConvolutionShape {
  ElementType type = ElementType::float32;
  std::vector<int64_t> x, w, y;  // [N, C, sizes], [M, C / groups, kernel], [N, M, sizes]
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  int64_t groups = 1;
  bool channels_last = false;  // how x, w and y lie
  bool transposed = false;     // y is convolved to x: w is [C, M / groups, kernel]
  bool allow_tf32 = false;
};

class Convolution {
 public:
  // nullopt where cuDNN has no way to do it.
  static std::optional<Convolution> plan(GpuQueue& queue, const ConvolutionShape& shape);
  void run(GpuQueue& queue, const void* x, const void* w, void* y) const;

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_;
};

}  // namespace tenon::cuda
