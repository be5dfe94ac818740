#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::passes {

// Writes the nodes that `wanted` chooses, subgraphs included, as their decomposition into smaller operators, as often
// as one of those is chosen too. Nodes whose operator has none stay. Types must be inferred; they are again afterwards.
// Returns a sentence for each node that stays although its operator has a decomposition.
std::vector<std::string> decompose(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted);

}  // namespace tenon::passes
