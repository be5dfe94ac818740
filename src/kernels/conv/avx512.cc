#include "kernels/simd/avx512.h"

#include "kernels/conv/depthwise_kernel.h"

namespace tenon::kernels {

constexpr DepthwiseKernels depthwise_kernels_avx512 = DepthwiseKernel<Avx512>::table();

}  // namespace tenon::kernels
