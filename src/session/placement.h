#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// Where the nodes of a graph run, with what that was said about.
struct Placement {
  std::vector<NodePlacement> nodes;
  std::vector<const ir::Node*> graph_nodes;  // by node
  std::vector<ValueCopy> copies;
  std::vector<const ir::Value*> copied;  // by copy

  // The estimates are filled in.
  void add(NodePlacement said, const ir::Node& node);
  void add(ValueCopy said, const ir::Value& value);
};

// `providers`: their names, in order. With `input_shapes`, estimates are those for inputs of these shapes, which are
// inferred through a copy of the graph.
PlacementReport report(const Placement& placement, const std::vector<std::string>& providers, const ir::Graph& graph,
                       const std::map<std::string, Shape>& input_shapes);

}  // namespace tenon
