#pragma once

#include "ir/graph.h"

namespace tenon::ir {

// Nodes of the graph and of all graphs in it.
inline size_t count_nodes(const Graph& graph) {
  size_t count = graph.nodes().size();
  for (const Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const Graph& subgraph) { count += count_nodes(subgraph); });
    }
  }
  return count;
}

}  // namespace tenon::ir
