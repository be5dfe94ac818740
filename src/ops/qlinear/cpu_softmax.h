#pragma once

#include "provider/cpu_kernels.h"

namespace tenon::ops {

void cpu_softmax_of_codes(CpuKernels& list);

}  // namespace tenon::ops
