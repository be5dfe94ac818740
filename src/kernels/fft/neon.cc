#include "kernels/simd/neon.h"

#include "kernels/fft/stage_kernel.h"

namespace tenon::kernels {

constexpr FftKernels fft_kernels_neon = FftStageKernel<Neon>::table();

}  // namespace tenon::kernels
