#pragma once

#include <map>

#include "ir/graph.h"

namespace tenon::ir {

// Adds copies of all nodes of `from`, which read and make what `values` has in place of their values; what it does not
// have stays shared.
void append_nodes(Graph& to, const Graph& from, std::map<const Value*, Value*>& values);

}  // namespace tenon::ir
