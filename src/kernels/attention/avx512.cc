#include "kernels/simd/avx512.h"

#include "kernels/attention/column_kernel.h"

namespace tenon::kernels {

constexpr AttentionKernels attention_kernels_avx512 = AttentionColumns<Avx512>::table();

}  // namespace tenon::kernels
