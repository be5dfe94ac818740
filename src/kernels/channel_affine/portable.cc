#include "kernels/simd/portable.h"

#include "kernels/channel_affine/affine_kernel.h"

namespace tenon::kernels {

constexpr AffineKernels affine_kernels_portable = AffineArrays<Portable>::table();

}  // namespace tenon::kernels
