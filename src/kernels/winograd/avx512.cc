#include "kernels/simd/avx512.h"

#include "kernels/winograd/transform_kernel.h"

namespace tenon::kernels {

constexpr WinogradKernels winograd_kernels_avx512 = WinogradTransforms<Avx512, 1>::table();

}  // namespace tenon::kernels
