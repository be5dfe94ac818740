#include "kernels/simd/portable.h"

#include "kernels/gemm_any/tile_kernel.h"

namespace tenon::kernels {
namespace {

using Doubles [[gnu::vector_size(16)]] = double;
using Words [[gnu::vector_size(16)]] = uint32_t;

}  // namespace

constexpr GemmAnyKernels gemm_any_kernels_portable = {
    Isa::portable, AnyTileKernel<Portable, double, Doubles, 4, 2>::tile(),
    AnyTileKernel<Portable, uint32_t, Words, 4, 2>::tile(), AnyTileKernel<Portable, uint64_t, uint64_t, 4, 2>::tile()};

}  // namespace tenon::kernels
