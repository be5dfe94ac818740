// What nodes do with a product of matrices or a convolution: add a bias and a residual, apply an activation.
#pragma once

#include <optional>

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// Input 2 is a bias for each column or channel, input 3 a residual; both may be left out.
class CudaEpilogue {
 public:
  CudaEpilogue() = default;
  explicit CudaEpilogue(const ir::Node& node);

  // The bias of element i is number i / `repeats` % `biases`. nullopt where nothing is to do.
  std::optional<CudaLoop> prepare(KernelRun& run, const Tensor& y, int64_t repeats, int64_t biases) const;
  void run(KernelRun& run, const CudaLoop& loop, Tensor& y) const;

 private:
  std::string text_;
};

}  // namespace tenon::ops
