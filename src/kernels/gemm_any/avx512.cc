#include "kernels/simd/avx512.h"

#include "kernels/gemm_any/tile_kernel.h"

namespace tenon::kernels {
namespace {

using Doubles [[gnu::vector_size(64)]] = double;
using Words [[gnu::vector_size(64)]] = uint32_t;
using LongWords [[gnu::vector_size(64)]] = uint64_t;

}  // namespace

constexpr GemmAnyKernels gemm_any_kernels_avx512 = {
    Isa::avx512, AnyTileKernel<Avx512, double, Doubles, 12, 2>::tile(/*reads_in_place=*/true),
    AnyTileKernel<Avx512, uint32_t, Words, 12, 2>::tile(/*reads_in_place=*/true),
    AnyTileKernel<Avx512, uint64_t, LongWords, 12, 2>::tile(/*reads_in_place=*/true)};

}  // namespace tenon::kernels
