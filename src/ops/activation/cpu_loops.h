#pragma once

#include "ops/cpu_support/unary_kernel.h"

namespace tenon::ops {

// The function of an operator of this folder, whose attributes are its parameters; null if there is none. TanhGelu is
// Gelu with `approximate`.
const UnaryFunction* find_activation(std::string_view name);

}  // namespace tenon::ops
