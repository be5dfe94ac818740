#include "kernels/simd/neon.h"

#include "kernels/chain/chain_kernel.h"

namespace tenon::kernels {

constexpr ChainKernels chain_kernels_neon = ChainArrays<Neon>::table();

}  // namespace tenon::kernels
