#include "kernels/simd/avx512.h"

#include "kernels/channel_affine/affine_kernel.h"

namespace tenon::kernels {

constexpr AffineKernels affine_kernels_avx512 = AffineArrays<Avx512>::table();

}  // namespace tenon::kernels
