#include "kernels/simd/avx2.h"

#include "kernels/channel_affine/affine_kernel.h"

namespace tenon::kernels {

constexpr AffineKernels affine_kernels_avx2 = AffineArrays<Avx2>::table();

}  // namespace tenon::kernels
