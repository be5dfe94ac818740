#pragma once

#include <string_view>

#include "tenon/element_type.h"

namespace tenon::ops {

// Combines elements with those already there.
struct Combine {
  // `count` of them in a row.
  void (*row)(void* to, const void* from, int64_t count) = nullptr;
  // to[places[i]] with from[i * step], for i < count.
  void (*at)(void* to, const int64_t* places, const void* from, int64_t step, int64_t count) = nullptr;
};

// Reductions: none, add, mul, max, min. Throws for a type that has no such reduction.
Combine combine_for(ElementType type, std::string_view reduction);

}  // namespace tenon::ops
