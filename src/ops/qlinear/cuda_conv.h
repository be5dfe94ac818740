#pragma once

#include "ops/cuda_support/kernels.h"

namespace tenon::ops {

// QLinearConv on images whose channels come last.
void cuda_nhwc_conv(CudaKernels& list);

}  // namespace tenon::ops
