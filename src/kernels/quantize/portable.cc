#include "kernels/simd/portable.h"

#include "kernels/quantize/codes_kernel.h"
#include "kernels/quantize/requantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_portable = QuantizeArrays<Portable>::table();
constexpr RequantizeKernels requantize_kernels_portable = RequantizeArrays<Portable>::requantize_table();
constexpr CodeKernels code_kernels_portable = CodeArrays<Portable>::code_table();

}  // namespace tenon::kernels
