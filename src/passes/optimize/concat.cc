#include <map>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The axis of a Split or Concat whose input or output has this rank.
int64_t axis_of(const ir::Node& node, int rank) {
  const int64_t axis = node.int_attribute("axis", 0);
  return axis < 0 ? axis + rank : axis;
}

// The Split all of whose outputs are, in their order, the inputs of the Concat from `first` on; else null.
const ir::Node* split_at(const ir::Node& concat, size_t first, int rank) {
  const ir::Value* input = concat.input(first);
  const ir::Node* split = input ? producer(input, "Split") : nullptr;
  if (!split || split->output_count() > concat.input_count() - first) return nullptr;
  for (size_t i = 0; i < split->output_count(); ++i) {
    if (!split->output(i) || split->output(i) != concat.input(first + i)) return nullptr;
  }
  return axis_of(*split, rank) == axis_of(concat, rank) ? split : nullptr;
}

}  // namespace

// Concat(Split(x), y) becomes Concat(x, y), which x can be made a part of.
void join_splits(Editor& editor, ir::Node& node) {
  if (node.op_type != "Concat" || !node.domain.empty() || !node.output(0)) return;
  const int rank = editor.rank(node.output(0));
  if (rank < 1) return;
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < node.input_count();) {
    const ir::Node* split = split_at(node, i, rank);
    inputs.push_back(split ? split->input(0) : node.input(i));
    i += split ? split->output_count() : 1;
  }
  if (inputs.size() == node.input_count()) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add_like(node, inputs).output(0)); });
}

// Concat(Concat(a, b), c) becomes Concat(a, b, c) where nothing else reads the inner one.
void merge_concats(Editor& editor, ir::Node& node) {
  if (node.op_type != "Concat" || !node.domain.empty() || !node.output(0)) return;
  const int rank = editor.rank(node.output(0));
  if (rank < 1) return;
  std::vector<ir::Value*> inputs;
  for (ir::Value* input : node.inputs()) {
    const ir::Node* inner = input ? producer(input, "Concat") : nullptr;
    if (inner && editor.is_only_user(*input) && axis_of(*inner, rank) == axis_of(node, rank))
      inputs.insert(inputs.end(), inner->inputs().begin(), inner->inputs().end());
    else
      inputs.push_back(input);
  }
  if (inputs.size() == node.input_count()) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add_like(node, inputs).output(0)); });
}

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
    const int64_t axis = axis_of(*node, rank);
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
