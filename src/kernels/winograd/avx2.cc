#include "kernels/simd/avx2.h"

#include "kernels/winograd/transform_kernel.h"

namespace tenon::kernels {

constexpr WinogradKernels winograd_kernels_avx2 = WinogradTransforms<Avx2, 1>::table();

}  // namespace tenon::kernels
