#pragma once

#include "provider/kernel.h"

namespace tenon {

// The shape inference found for output i, for kernels that cannot tell it themselves. Throws ErrorCode::shape_mismatch
// when an input that it depends on, such as a list of axes, is not what inference can read.
const Shape& output_shape(const KernelRun& run, size_t i);

}  // namespace tenon
