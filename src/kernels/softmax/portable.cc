#include "kernels/simd/portable.h"

#include "kernels/softmax/row_kernel.h"

namespace tenon::kernels {

constexpr SoftmaxKernels softmax_kernels_portable = SoftmaxRow<Portable>::table();

}  // namespace tenon::kernels
