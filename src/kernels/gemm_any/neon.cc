#include "kernels/simd/neon.h"

#include "kernels/gemm_any/tile_kernel.h"

namespace tenon::kernels {
namespace {

using Doubles [[gnu::vector_size(16)]] = double;
using Words [[gnu::vector_size(16)]] = uint32_t;

}  // namespace

constexpr GemmAnyKernels gemm_any_kernels_neon = {Isa::neon, AnyTileKernel<Neon, double, Doubles, 5, 4>::tile(),
                                                  AnyTileKernel<Neon, uint32_t, Words, 4, 4>::tile(),
                                                  AnyTileKernel<Neon, uint64_t, uint64_t, 5, 4>::tile()};

}  // namespace tenon::kernels
