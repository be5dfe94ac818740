#include "kernels/simd/neon.h"

#include "kernels/layer_norm/row_kernel.h"

namespace tenon::kernels {

constexpr LayerNormKernels layer_norm_kernels_neon = LayerNormRow<Neon>::table();

}  // namespace tenon::kernels
