#include "kernels/simd/portable.h"

#include "kernels/math/array_kernel.h"

namespace tenon::kernels {

constexpr MathKernels math_kernels_portable = MathArrays<Portable>::table();

}  // namespace tenon::kernels
