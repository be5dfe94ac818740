#include <fmt/format.h>

#include "ops/cuda_support/elementwise.h"

namespace tenon::ops {

// a * sigmoid(alpha * a) * b
void cuda_swiglu(CudaKernels& list) {
  list.add(
      "SwiGLU",
      [](const NodeInfo& info) {
        const std::string alpha = cuda::number_text(info.node().float_attribute("alpha", 1), ElementType::float64);
        return std::make_unique<CudaElementwise>(fmt::format("r = a0 * (1 / (1 + exp(-a0 * (float){}))) * a1;", alpha));
      },
      {.types = types::floats});
}

}  // namespace tenon::ops
