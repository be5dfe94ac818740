#include "kernels/simd/neon.h"

#include "kernels/softmax/row_kernel.h"

namespace tenon::kernels {

constexpr SoftmaxKernels softmax_kernels_neon = SoftmaxRow<Neon>::table();

}  // namespace tenon::kernels
