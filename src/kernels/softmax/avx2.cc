#include "kernels/simd/avx2.h"

#include "kernels/softmax/row_kernel.h"

namespace tenon::kernels {

constexpr SoftmaxKernels softmax_kernels_avx2 = SoftmaxRow<Avx2>::table();

}  // namespace tenon::kernels
