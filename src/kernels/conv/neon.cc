#include "kernels/simd/neon.h"

#include "kernels/conv/depthwise_kernel.h"

namespace tenon::kernels {

constexpr DepthwiseKernels depthwise_kernels_neon = DepthwiseKernel<Neon>::table();

}  // namespace tenon::kernels
