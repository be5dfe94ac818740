#include "passes/decompose.h"

#include "ops/decomposition.h"
#include "passes/infer.h"

namespace tenon::passes {
namespace {

bool decompose_once(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted) {
  bool changed = false;
  std::vector<ir::Node*> nodes;
  for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
  for (ir::Node* node : nodes) {
    for (const ir::Attribute& attribute : node->attributes) {
      attribute.for_each_graph([&](ir::Graph& subgraph) { changed |= decompose_once(subgraph, wanted); });
    }
    if (wanted(*node)) changed |= ops::decompose(*node).empty();
  }
  // What takes a Gradient's place reads tensors that the node itself did not.
  if (changed) graph.sort_topologically();
  return changed;
}

}  // namespace

bool decompose(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted) {
  bool changed = false;
  // No decomposition contains its own operator, so this ends.
  while (decompose_once(graph, wanted)) {
    changed = true;
    infer_types(graph);
  }
  return changed;
}

}  // namespace tenon::passes
