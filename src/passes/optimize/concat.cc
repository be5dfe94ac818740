#include <map>

#include "passes/optimize/passes.h"

namespace tenon::passes {

// Concat(a, b, c) beside Concat(a, b) becomes Concat(Concat(a, b), c): where the parts are adjacent in memory, the
// smaller result then is a part of the larger one, and nothing is copied.
void grow_concats(Editor& editor, ir::Graph& graph) {
  using Inputs = std::vector<const ir::Value*>;
  std::map<std::pair<int64_t, Inputs>, ir::Value*> known;  // by axis and inputs
  std::vector<ir::Node*> nodes;
  for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
  for (ir::Node* node : nodes) {
    if (node->op_type != "Concat" || !node->domain.empty() || !node->output(0)) continue;
    const int rank = editor.rank(node->output(0));
    if (rank < 2) continue;
    int64_t axis = node->int_attribute("axis", 0);
    axis = axis < 0 ? axis + rank : axis;
    const Inputs inputs(node->inputs().begin(), node->inputs().end());
    ir::Value* whole = node->output(0);
    for (size_t count = inputs.size() - 1; count >= 2 && count < inputs.size(); --count) {
      auto found = known.find({axis, Inputs(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(count))});
      if (found == known.end()) continue;
      editor.rewrite(*node, [&](Patch& patch) {
        std::vector<ir::Value*> parts = {found->second};
        for (size_t i = count; i < inputs.size(); ++i) parts.push_back(node->input(i));
        whole = patch.add_like(*node, parts).output(0);
        patch.replace(*node, *whole);
      });
      if (!editor.is_removed(*node)) whole = node->output(0);
      break;
    }
    known.emplace(std::pair(axis, inputs), whole);
  }
}

}  // namespace tenon::passes
