#include "kernels/simd/sve256.h"

#include "kernels/layer_norm/row_kernel.h"

namespace tenon::kernels {

constexpr LayerNormKernels layer_norm_kernels_sve256 = LayerNormRow<Sve256>::table();

}  // namespace tenon::kernels
