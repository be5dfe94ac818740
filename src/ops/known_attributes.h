#pragma once

#include "ir/graph.h"

namespace tenon::ops {

// Gives `to` the attributes of `from` that its own operator has too.
void copy_known_attributes(const ir::Node& from, ir::Node& to);

}  // namespace tenon::ops
