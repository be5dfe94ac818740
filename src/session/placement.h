#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// Where the nodes of a graph run. Graph and providers must outlive it.
struct Placement {
  struct Node {
    const ir::Node* node;
    std::string_view provider;
    std::string kernel;
    std::vector<std::pair<std::string, std::string>> declined;  // providers asked before, with their reasons
  };
  struct Copy {
    const ir::Value* value;
    std::string_view from, to;  // providers
  };
  std::vector<Node> nodes;
  int64_t rounded_nodes = 0;  // that compute in less than full precision

  std::vector<Copy> copies;
};

// `providers`: their names, in order. With `input_shapes`, estimates are those for inputs of these shapes, which are
// inferred through a copy of the graph.
PlacementReport report(const Placement& placement, const std::vector<std::string>& providers, const ir::Graph& graph,
                       const std::map<std::string, Shape>& input_shapes);

}  // namespace tenon
