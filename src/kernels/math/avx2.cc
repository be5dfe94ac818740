#include "kernels/simd/avx2.h"

#include "kernels/math/array_kernel.h"

namespace tenon::kernels {

constexpr MathKernels math_kernels_avx2 = MathArrays<Avx2>::table();

}  // namespace tenon::kernels
