#include "kernels/simd/sve256.h"

#include "kernels/chain/chain_kernel.h"

namespace tenon::kernels {

constexpr ChainKernels chain_kernels_sve256 = ChainArrays<Sve256>::table();

}  // namespace tenon::kernels
