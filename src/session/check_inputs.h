#pragma once

#include <vector>

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// The values of a run in the order of the graph's inputs; undefined where an initializer serves. Throws if one is
// missing, unknown, or not of the declared type and shape, or if a named size is bound to two sizes.
std::vector<Value> check_inputs(const ir::Graph& graph, const NamedValues& feeds);

}  // namespace tenon
