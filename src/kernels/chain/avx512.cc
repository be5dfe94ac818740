#include "kernels/simd/avx512.h"

#include "kernels/chain/chain_kernel.h"

namespace tenon::kernels {

constexpr ChainKernels chain_kernels_avx512 = ChainArrays<Avx512>::table();

}  // namespace tenon::kernels
