#pragma once

#include <span>

#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

// Throws ErrorCode::type_mismatch unless the inputs, null where one is left out, have types that the operator takes;
// those that share a type variable must have one type. Types that are not known pass.
void check_input_types(const Operator& op, const ir::Node& node, std::span<const Fact* const> inputs);

}  // namespace tenon::ops
