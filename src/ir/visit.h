#pragma once

#include "ir/graph.h"

namespace tenon::ir {

// Calls visit(Graph&) for the graphs in a node's attributes.
template <typename Visit>
void for_each_subgraph(const Node& node, Visit&& visit) {
  for (const Attribute& attribute : node.attributes) attribute.for_each_graph(visit);
}

// Whether there are any: the node is control flow, or alike.
inline bool has_subgraphs(const Node& node) {
  bool found = false;
  for_each_subgraph(node, [&](const Graph&) { found = true; });
  return found;
}

// Calls visit(Graph&) for a graph and all graphs in it, outer ones first.
template <typename Visit>
void for_each_graph(Graph& graph, Visit&& visit) {
  visit(graph);
  for (Node& node : graph.nodes()) {
    for_each_subgraph(node, [&](Graph& subgraph) { for_each_graph(subgraph, visit); });
  }
}

}  // namespace tenon::ir
