// What nodes do with a product of matrices or a convolution: add a bias and a residual, apply an activation.
#pragma once

#include <optional>

#include "cuda/gemm.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// Input 2 is a bias for each column or channel, input 3 a residual; both may be left out.
class CudaEpilogue {
 public:
  CudaEpilogue() = default;
  explicit CudaEpilogue(const ir::Node& node);

  // What a library can do of it while it stores its results.
  const cuda::Epilogue& for_library() const { return for_library_; }
  // What is left to do when a library did `done`. The bias of element i is number i / `repeats` % `biases`. nullopt
  // where nothing is.
  std::optional<CudaLoop> prepare(KernelRun& run, const Tensor& y, int64_t repeats, int64_t biases,
                                  const cuda::Epilogue& done = {}) const;
  void run(KernelRun& run, const CudaLoop& loop, Tensor& y) const;

  // Statements that do all of it with `r`, of type Wide<T>, where `bias` and `residual` are what is added.
  std::string text(const cuda::Epilogue& done, std::string_view bias, std::string_view residual) const;
  // A kernel with these statements, all of them, in place of EPILOGUE.
  std::string in_kernel(std::string_view kernel, std::string_view bias, std::string_view residual) const;
  static const void* bias_of(const KernelRun& run) { return run.has_input(2) ? run.input(2).raw() : nullptr; }
  static const void* residual_of(const KernelRun& run) { return run.has_input(3) ? run.input(3).raw() : nullptr; }

 private:
  cuda::Epilogue for_library_;
  std::string activation_;  // a statement
};

}  // namespace tenon::ops
