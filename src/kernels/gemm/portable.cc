#include "kernels/simd/portable.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {

constexpr GemmKernels gemm_kernels_portable = GemmTileKernels<BroadcastTile<Portable, 4, 2>>::table();

}  // namespace tenon::kernels
