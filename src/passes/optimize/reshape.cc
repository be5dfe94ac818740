#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

bool only_changes_shape(const ir::Node& node) {
  const std::string& op = node.op_type;
  return node.domain.empty() && (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze");
}

// Whether the shape that the node makes was computed from its inputs, not merely declared by the model.
bool shape_is_computed(Editor& editor, const ir::Node& node) {
  if (node.op_type == "Flatten" || (node.op_type == "Squeeze" && !node.input(1))) return true;
  return editor.values(node.input(1)).has_value();
}

}  // namespace

void merge_reshapes(Editor& editor, ir::Node& node) {
  if (!only_changes_shape(node) || !node.input(0) || !node.output(0)) return;
  if (!shape_is_computed(editor, node)) return;
  ir::Value &input = *node.input(0), &output = *node.output(0);
  if (editor.same_shape(&input, &output) && editor.can_replace(output, input)) {
    editor.rewrite(node, [&](Patch& patch) { patch.replace(output, input); });
    return;
  }
  ir::Node* inner = input.producer();
  if (!inner || !only_changes_shape(*inner) || !inner->input(0) || !shape_is_computed(editor, *inner)) return;
  ir::Value& source = *inner->input(0);
  if (editor.same_shape(&source, &output) && editor.can_replace(output, source)) {
    editor.rewrite(node, [&](Patch& patch) { patch.replace(output, source); });
    return;
  }
  if (node.op_type != "Reshape") return;
  // A 0 means the size that the inner node made.
  auto target = editor.ints(node.input(1));
  if (!target || (std::ranges::count(*target, 0) > 0 && node.int_attribute("allowzero", 0) == 0)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add_like(node, {&source, node.input(1)}).output(0));
  });
}

// The target of a Reshape that is computed from shapes, written with 0 for a size that the input has on the same axis
// and -1 for at most one other.
void fold_reshape_targets(Editor& editor, ir::Node& node) {
  if (node.op_type != "Reshape" || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  if (!node.input(1) || Editor::constant(node.input(1))) return;
  auto target = editor.values(node.input(1));
  const SymbolicShape* input = editor.shape(node.input(0));
  if (!target || !input) return;
  std::vector<int64_t> numbers;
  bool copies = false, infers = false;
  for (size_t i = 0; i < target->size(); ++i) {
    const Dim& size = (*target)[i];
    if (size.is_known() && size.value() > 0) {
      numbers.push_back(size.value());
    } else if (!size.is_known() && i < input->size() && size == (*input)[i]) {
      numbers.push_back(0);
      copies = true;
    } else if (!infers && !size.is(0)) {
      numbers.push_back(-1);  // it follows from the others, whatever it is
      infers = true;
    } else {
      return;
    }
  }
  // Beside a size of 0, which any symbolic size may be when the model runs, -1 has no meaning.
  if (infers && copies) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add("Reshape", {node.input(0), patch.ints(numbers)}));
  });
}

}  // namespace tenon::passes
