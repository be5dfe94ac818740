#include "kernels/simd/avx2.h"

#include "kernels/quantize/quantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_avx2 = QuantizeArrays<Avx2>::table();

}  // namespace tenon::kernels
