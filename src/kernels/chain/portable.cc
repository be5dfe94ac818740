#include "kernels/simd/portable.h"

#include "kernels/chain/chain_kernel.h"

namespace tenon::kernels {

constexpr ChainKernels chain_kernels_portable = ChainArrays<Portable>::table();

}  // namespace tenon::kernels
