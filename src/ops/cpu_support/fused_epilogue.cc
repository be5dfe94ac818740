#include "ops/cpu_support/fused_epilogue.h"

#include "kernels/math/math.h"

namespace tenon::ops {

FusedEpilogue::FusedEpilogue(const ir::Node& node) {
  switch (fused_activation(node)) {
    case FusedActivation::none:
      break;
    case FusedActivation::relu:
      lo = 0;
      break;
    case FusedActivation::clip:
      lo = node.floats_attribute("activation_params")[0];
      hi = node.floats_attribute("activation_params")[1];
      break;
    case FusedActivation::sigmoid:
      function = kernels::f32_sigmoid;
      half_function = kernels::f16_sigmoid;
      break;
    case FusedActivation::tanh:
      function = kernels::f32_tanh;
      half_function = kernels::f16_tanh;
      break;
    case FusedActivation::swish:
      function = kernels::f32_silu;
      half_function = kernels::f16_silu;
      break;
    case FusedActivation::hard_swish:
      function = kernels::f32_hard_swish;
      half_function = kernels::f16_hard_swish;
      break;
    case FusedActivation::gelu:
      function = kernels::f32_gelu;
      half_function = kernels::f16_gelu;
      break;
    case FusedActivation::tanh_gelu:
      function = kernels::f32_gelu_tanh;
      half_function = kernels::f16_gelu_tanh;
      break;
  }
}

void FusedEpilogue::apply(float* y, const float* residual, int64_t n) const {
  for (int64_t i = 0; i < n; ++i) {
    float v = residual ? y[i] + residual[i] : y[i];
    v = lo > v ? lo : v;
    y[i] = hi < v ? hi : v;
  }
  if (function) function(y, y, n);
}

}  // namespace tenon::ops
