// Convolutions, by cuDNN.
#pragma once

#include <optional>

#include "cuda/gemm.h"
#include "cuda/gpu.h"

namespace tenon::cuda {

struct ConvolutionShape {
  ElementType type = ElementType::float32;
  std::vector<int64_t> x, w, y;  // [N, C, sizes], [M, C / groups, kernel], [N, M, sizes]
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  int64_t groups = 1;
  bool has_fixed_weights = false;  // w is constant: no kernel writes it
  bool channels_last = false;      // how x, w and y lie
  bool transposed = false;         // y is convolved to x: w is [C, M / groups, kernel]
  bool allow_tf32 = false;
  Epilogue epilogue;  // a residual lies as y does, a bias is [M]

  std::string text() const;  // by which equal ones are known
};

// The memory that a convolution works on.
struct ConvolutionData {
  const void *x = nullptr, *w = nullptr;
  void* y = nullptr;
  const void *bias = nullptr, *residual = nullptr;
};

class Convolution {
 public:
  // The fastest of some ways that cuDNN proposes, which are tried on the data, or the first one where that is not worth
  // it. nullopt where it has no way to do it.
  static std::optional<Convolution> plan(GpuQueue& queue, Uses uses, const ConvolutionShape& shape,
                                         const ConvolutionData& data);
  void run(GpuQueue& queue, const ConvolutionData& data) const;

 private:
  struct Plan;
  static std::vector<Convolution> ways(GpuQueue& queue, const ConvolutionShape& shape, int64_t alignment, size_t most);
  // The first way for memory that is aligned so.
  static std::optional<Convolution> untried(GpuQueue& queue, const ConvolutionShape& shape, int64_t alignment);
  explicit Convolution(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const Plan> plan_;
};

}  // namespace tenon::cuda
