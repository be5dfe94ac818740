#pragma once

#include "tenon/tensor.h"

namespace tenon::tools {

bool is_half(ElementType type);
// The largest finite number of float16 or bfloat16.
double largest_of(ElementType type);

// The tensor in another floating-point type: float, float16 or bfloat16.
Tensor cast_floats(const Tensor& tensor, ElementType to);

// Why a float tensor cannot be of a smaller type: numbers too large, or most of them too small; "" if it can.
std::string why_not_half(const Tensor& tensor, ElementType to);

// How far rounding to float16 or bfloat16 is off at most, as a share of the number.
double rounding_of(ElementType type);
// How far a number of a float tensor is off at most when all are rounded to a smaller type.
double largest_rounding_error(const Tensor& tensor, ElementType to);

// The largest finite magnitude in a float tensor.
double largest_magnitude(const Tensor& tensor);

}  // namespace tenon::tools
