#include "kernels/simd/neon.h"

#include "kernels/peak/peak_kernel.h"

namespace tenon::kernels {

constexpr PeakKernels peak_kernels_neon = PeakLoops<Neon, 24>::table();

}  // namespace tenon::kernels
