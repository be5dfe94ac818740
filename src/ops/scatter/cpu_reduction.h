#pragma once

#include <string_view>

#include "tenon/element_type.h"

namespace tenon::ops {

// Combines `count` elements in a row with those already there.
using Combine = void (*)(void* to, const void* from, int64_t count);

// Reductions: none, add, mul, max, min. Throws for a type that has no such reduction.
Combine combine_for(ElementType type, std::string_view reduction);

}  // namespace tenon::ops
