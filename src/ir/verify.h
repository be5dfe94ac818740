#pragma once

#include "ir/graph.h"

namespace tenon::ir {

// Throws if names are undefined (all of them in one error) or defined twice, subgraphs included; sorts nodes that come
// before what they read, and throws if they form a cycle.
void verify_and_sort(Graph& graph);

}  // namespace tenon::ir
