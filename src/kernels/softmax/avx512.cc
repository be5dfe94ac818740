#include "kernels/simd/avx512.h"

#include "kernels/softmax/row_kernel.h"

namespace tenon::kernels {

constexpr SoftmaxKernels softmax_kernels_avx512 = SoftmaxRow<Avx512>::table();

}  // namespace tenon::kernels
