#pragma once

#include "ir/graph.h"

namespace tenon::ir {

// Throws if names are undefined (all of them in one error) or defined twice, subgraphs included; sorts nodes that come
// before what they read, and throws if they form a cycle.
void verify_and_sort(Graph& graph);

// Throws ErrorCode::internal if nodes and values do not agree on who makes and who reads what, subgraphs included. Only
// a bug in Tenon can bring that about.
void verify_links(const Graph& graph);

}  // namespace tenon::ir
