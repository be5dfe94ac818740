#include "kernels/simd/portable.h"

#include "kernels/fft/stage_kernel.h"

namespace tenon::kernels {

constexpr FftKernels fft_kernels_portable = FftStageKernel<Portable>::table();

}  // namespace tenon::kernels
