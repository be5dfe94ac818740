#pragma once

#include "tenon/element_type.h"
#include "tenon/scalar.h"

namespace tenon::ops {

// How the floats of a byte or less are laid out; null for other types.
const SmallFloatFormat* small_float_format(ElementType type);

// Integers of less than a byte whose codes have a sign.
inline bool is_signed_code(ElementType type) { return type == ElementType::int4 || type == ElementType::int2; }

}  // namespace tenon::ops
