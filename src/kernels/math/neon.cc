#include "kernels/simd/neon.h"

#include "kernels/math/array_kernel.h"

namespace tenon::kernels {

constexpr MathKernels math_kernels_neon = MathArrays<Neon>::table();

}  // namespace tenon::kernels
