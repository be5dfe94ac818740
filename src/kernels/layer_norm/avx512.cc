#include "kernels/simd/avx512.h"

#include "kernels/layer_norm/row_kernel.h"

namespace tenon::kernels {

constexpr LayerNormKernels layer_norm_kernels_avx512 = LayerNormRow<Avx512>::table();

}  // namespace tenon::kernels
