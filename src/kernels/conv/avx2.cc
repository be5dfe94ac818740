#include "kernels/simd/avx2.h"

#include "kernels/conv/depthwise_kernel.h"

namespace tenon::kernels {

constexpr DepthwiseKernels depthwise_kernels_avx2 = DepthwiseKernel<Avx2>::table();

}  // namespace tenon::kernels
