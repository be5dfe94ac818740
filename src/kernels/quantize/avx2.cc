#include "kernels/simd/avx2.h"

#include "kernels/quantize/codes_kernel.h"
#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_avx2 = QuantizeArrays<Avx2>::table();
constexpr RequantizeKernels requantize_kernels_avx2 = RequantizeArrays<Avx2>::requantize_table();
constexpr CodeKernels code_kernels_avx2 = CodeArrays<Avx2>::code_table();

}  // namespace tenon::kernels
