#pragma once

#include "kernels/gemm/gemm.h"
#include "ops/fused_activation.h"

namespace tenon::ops {

// A fused activation as the kernels apply it: limits, and a function where these do not suffice.
struct FusedEpilogue {
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
  kernels::FloatFunction function = nullptr;
  void (*half_function)(const uint16_t* x, uint16_t* y, int64_t n) = nullptr;  // the same for half precision

  FusedEpilogue() = default;
  explicit FusedEpilogue(const ir::Node& node);

  // Does it to n values; `residual` may be null.
  void apply(float* y, const float* residual, int64_t n) const;
};

}  // namespace tenon::ops
