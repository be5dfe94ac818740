#include "kernels/simd/sve256.h"

#include "kernels/softmax/row_kernel.h"

namespace tenon::kernels {

constexpr SoftmaxKernels softmax_kernels_sve256 = SoftmaxRow<Sve256>::table();

}  // namespace tenon::kernels
