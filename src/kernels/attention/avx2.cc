#include "kernels/simd/avx2.h"

#include "kernels/attention/column_kernel.h"

namespace tenon::kernels {

constexpr AttentionKernels attention_kernels_avx2 = AttentionColumns<Avx2>::table();

}  // namespace tenon::kernels
