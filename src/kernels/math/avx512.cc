#include "kernels/simd/avx512.h"

#include "kernels/math/array_kernel.h"

namespace tenon::kernels {

constexpr MathKernels math_kernels_avx512 = MathArrays<Avx512>::table();

}  // namespace tenon::kernels
