#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace tenon {

// The smallest size that an integer tensor's elements are positions along: Gather and the like read it, as it is or
// moved about. 0 when nothing does, or no such size is known. Types must be inferred.
int64_t index_limit(const ir::Value& value);

}  // namespace tenon
