#pragma once

#include "ops/cpu_support/unary_kernel.h"

namespace tenon::ops {

// The function of an operator of this folder without attributes; null if there is none.
const UnaryFunction* find_unary_function(std::string_view op);

}  // namespace tenon::ops
