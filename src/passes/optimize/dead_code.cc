#include <algorithm>

#include "passes/optimize/passes.h"

namespace tenon::passes {

void remove_dead_code(Editor& editor, ir::Graph& graph) {
  std::vector<ir::Node*> unused;
  for (ir::Node& node : graph.nodes()) {
    bool used = std::ranges::any_of(node.outputs(), [&](const ir::Value* value) {
      return value && (!value->users().empty() || editor.is_pinned(*value));
    });
    if (!used) unused.push_back(&node);
  }
  editor.remove_unused(unused);
  editor.remove_unused_initializers(graph);
}

}  // namespace tenon::passes
