#pragma once

#include "tenon/tensor.h"

namespace tenon::ops {

// An element of a tensor of numbers as an integer, rounded towards zero; one beyond the range of int64 becomes its
// largest.
int64_t number_at(const Tensor& tensor, int64_t index);

}  // namespace tenon::ops
