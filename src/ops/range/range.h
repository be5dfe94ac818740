#pragma once

#include "tenon/tensor.h"

namespace tenon::ops {

// How many numbers a Range of these scalars has. Throws ErrorCode::invalid_value for a step of 0 or a length that is none.
int64_t range_length(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace tenon::ops
