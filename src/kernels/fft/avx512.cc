#include "kernels/simd/avx512.h"

#include "kernels/fft/stage_kernel.h"

namespace tenon::kernels {

constexpr FftKernels fft_kernels_avx512 = FftStageKernel<Avx512>::table();

}  // namespace tenon::kernels
