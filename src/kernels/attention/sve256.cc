#include "kernels/simd/sve256.h"

#include "kernels/attention/column_kernel.h"

namespace tenon::kernels {

constexpr AttentionKernels attention_kernels_sve256 = AttentionColumns<Sve256>::table();

}  // namespace tenon::kernels
