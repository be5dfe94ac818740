#include "kernels/simd/avx512.h"

#include "kernels/peak/peak_kernel.h"

namespace tenon::kernels {

constexpr PeakKernels peak_kernels_avx512 = PeakLoops<Avx512, 24>::table();

}  // namespace tenon::kernels
