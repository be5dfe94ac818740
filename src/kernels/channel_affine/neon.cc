#include "kernels/simd/neon.h"

#include "kernels/channel_affine/affine_kernel.h"

namespace tenon::kernels {

constexpr AffineKernels affine_kernels_neon = AffineArrays<Neon>::table();

}  // namespace tenon::kernels
