#include "kernels/simd/avx512.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {

constexpr GemmKernels gemm_kernels_avx512 = GemmTileKernels<BroadcastTile<Avx512, 14, 2>>::table();

}  // namespace tenon::kernels
