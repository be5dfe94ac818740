#include "kernels/simd/avx2.h"

#include "kernels/layer_norm/row_kernel.h"

namespace tenon::kernels {

constexpr LayerNormKernels layer_norm_kernels_avx2 = LayerNormRow<Avx2>::table();

}  // namespace tenon::kernels
