#include "kernels/simd/avx512.h"

#include "kernels/quantize/quantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_avx512 = QuantizeArrays<Avx512>::table();

}  // namespace tenon::kernels
