#include "kernels/simd/avx2.h"

#include "kernels/fft/stage_kernel.h"

namespace tenon::kernels {

constexpr FftKernels fft_kernels_avx2 = FftStageKernel<Avx2>::table();

}  // namespace tenon::kernels
