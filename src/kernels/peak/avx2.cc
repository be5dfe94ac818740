#include "kernels/simd/avx2.h"

#include "kernels/peak/peak_kernel.h"

namespace tenon::kernels {

constexpr PeakKernels peak_kernels_avx2 = PeakLoops<Avx2, 12>::table();

}  // namespace tenon::kernels
