#include "kernels/simd/portable.h"

#include "kernels/winograd/transform_kernel.h"

namespace tenon::kernels {

constexpr WinogradKernels winograd_kernels_portable = WinogradTransforms<Portable, 2>::table();

}  // namespace tenon::kernels
