#pragma once

#include <functional>

#include "ir/graph.h"

namespace tenon::passes {

// Writes the nodes that `wanted` chooses, subgraphs included, as their decomposition into smaller operators, as often
// as one of those is chosen too. Nodes that have none stay. Types must be inferred; they are again afterwards. Returns
// whether anything changed.
bool decompose(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted);

}  // namespace tenon::passes
