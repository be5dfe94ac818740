#include "kernels/simd/sve256.h"

#include "kernels/math/array_kernel.h"

namespace tenon::kernels {

constexpr MathKernels math_kernels_sve256 = MathArrays<Sve256>::table();

}  // namespace tenon::kernels
