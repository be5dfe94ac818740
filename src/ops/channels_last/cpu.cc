#include "provider/cpu_kernels.h"

namespace tenon::ops {

// None: the CPU's own layout is in blocks of channels, and these decompose there.
void cpu_channels_last(CpuKernels&) {}

}  // namespace tenon::ops
