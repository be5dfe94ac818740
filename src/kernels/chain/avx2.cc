#include "kernels/simd/avx2.h"

#include "kernels/chain/chain_kernel.h"

namespace tenon::kernels {

constexpr ChainKernels chain_kernels_avx2 = ChainArrays<Avx2>::table();

}  // namespace tenon::kernels
