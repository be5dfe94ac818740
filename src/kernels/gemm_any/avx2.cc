#include "kernels/simd/avx2.h"

#include "kernels/gemm_any/tile_kernel.h"

namespace tenon::kernels {
namespace {

using Doubles [[gnu::vector_size(32)]] = double;
using Words [[gnu::vector_size(32)]] = uint32_t;
using LongWords [[gnu::vector_size(32)]] = uint64_t;

}  // namespace

constexpr GemmAnyKernels gemm_any_kernels_avx2 = {
    Isa::avx2, AnyTileKernel<Avx2, double, Doubles, 6, 2>::tile(/*reads_in_place=*/true),
    AnyTileKernel<Avx2, uint32_t, Words, 6, 2>::tile(/*reads_in_place=*/true),
    AnyTileKernel<Avx2, uint64_t, LongWords, 6, 2>::tile(/*reads_in_place=*/true)};

}  // namespace tenon::kernels
