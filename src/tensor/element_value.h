#pragma once

#include "tenon/tensor.h"

namespace tenon {

// Element i of any numeric type as a double; of a complex type its real part; of a string NaN.
double element_as_double(const Tensor& tensor, int64_t i);

// Element i as text: "1.5", "true", "3+2i", "\"abc\"".
std::string element_as_text(const Tensor& tensor, int64_t i);

}  // namespace tenon
