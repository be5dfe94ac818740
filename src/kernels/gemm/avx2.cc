#include "kernels/simd/avx2.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {

constexpr GemmKernels gemm_kernels_avx2 = GemmTileKernels<BroadcastTile<Avx2, 6, 2>>::table();

}  // namespace tenon::kernels
