#include "kernels/simd/portable.h"

#include "kernels/conv/depthwise_kernel.h"

namespace tenon::kernels {

constexpr DepthwiseKernels depthwise_kernels_portable = DepthwiseKernel<Portable>::table();

}  // namespace tenon::kernels
