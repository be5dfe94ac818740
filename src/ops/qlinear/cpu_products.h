#pragma once

#include "provider/cpu_kernels.h"

namespace tenon::ops {

void cpu_products(CpuKernels& list);

}  // namespace tenon::ops
