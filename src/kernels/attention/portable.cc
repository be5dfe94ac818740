#include "kernels/simd/portable.h"

#include "kernels/attention/column_kernel.h"

namespace tenon::kernels {

constexpr AttentionKernels attention_kernels_portable = AttentionColumns<Portable>::table();

}  // namespace tenon::kernels
