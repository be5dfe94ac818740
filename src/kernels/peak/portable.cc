#include "kernels/simd/portable.h"

#include "kernels/peak/peak_kernel.h"

namespace tenon::kernels {

constexpr PeakKernels peak_kernels_portable = PeakLoops<Portable, 8>::table();

}  // namespace tenon::kernels
