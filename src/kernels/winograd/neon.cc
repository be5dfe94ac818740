#include "kernels/simd/neon.h"

#include "kernels/winograd/transform_kernel.h"

namespace tenon::kernels {

constexpr WinogradKernels winograd_kernels_neon = WinogradTransforms<Neon, 2>::table();

}  // namespace tenon::kernels
