#include "kernels/simd/neon.h"

#include "kernels/attention/column_kernel.h"

namespace tenon::kernels {

constexpr AttentionKernels attention_kernels_neon = AttentionColumns<Neon>::table();

}  // namespace tenon::kernels
