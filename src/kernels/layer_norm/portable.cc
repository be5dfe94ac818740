#include "kernels/simd/portable.h"

#include "kernels/layer_norm/row_kernel.h"

namespace tenon::kernels {

constexpr LayerNormKernels layer_norm_kernels_portable = LayerNormRow<Portable>::table();

}  // namespace tenon::kernels
