#include "kernels/simd/avx512.h"

#include "kernels/quantize/codes_kernel.h"
#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_avx512 = QuantizeArrays<Avx512>::table();
constexpr RequantizeKernels requantize_kernels_avx512 = RequantizeArrays<Avx512>::requantize_table();
constexpr CodeKernels code_kernels_avx512 = CodeArrays<Avx512>::code_table();

}  // namespace tenon::kernels
