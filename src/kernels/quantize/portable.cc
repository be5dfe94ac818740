#include "kernels/simd/portable.h"

#include "kernels/quantize/quantize_kernel.h"

namespace tenon::kernels {

constexpr QuantizeKernels quantize_kernels_portable = QuantizeArrays<Portable>::table();

}  // namespace tenon::kernels
