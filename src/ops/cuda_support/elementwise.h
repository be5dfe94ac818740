// Kernels that compute each element of the output from one element of each input, which are broadcast to it.
#pragma once

#include "ops/cuda_support/kernels.h"

namespace tenon::ops {

// `body`: statements that set `r` to what an element of the output becomes, from `a0`, `a1`, …, elements of the inputs
// in the types they are computed in.
class CudaElementwise final : public Kernel {
 public:
  explicit CudaElementwise(std::string body) : body_(std::move(body)) {}
  void run(KernelRun& run) const override;
  bool may_overwrite(size_t) const override { return true; }

 private:
  struct Prepared;
  Prepared prepare(KernelRun& run, const Tensor& y) const;

  std::string body_;
};

}  // namespace tenon::ops
