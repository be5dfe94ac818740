#include <algorithm>
#include <utility>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The axes of one Unsqueeze that does what two do, when they are known.
std::optional<std::vector<int64_t>> axes_of_both(Editor& editor, const ir::Node& first, const ir::Node& second) {
  const auto inner = editor.ints(first.input(1)), outer = editor.ints(second.input(1));
  const int middle = editor.rank(first.output(0)), rank = editor.rank(second.output(0));
  if (!inner || !outer || middle < 0 || rank < 0) return std::nullopt;
  std::vector<bool> added(static_cast<size_t>(rank));
  for (int64_t axis : *outer) added[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  std::vector<size_t> kept;  // where the axes in between end up
  for (size_t axis = 0; axis < added.size(); ++axis) {
    if (!added[axis]) kept.push_back(axis);
  }
  for (int64_t axis : *inner) added[kept[static_cast<size_t>(axis < 0 ? axis + middle : axis)]] = true;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < added.size(); ++axis) {
    if (added[axis]) axes.push_back(static_cast<int64_t>(axis));
  }
  return axes;
}

// What a Reshape from one shape to the other is told, when that is known: 0 for a size that stays on its axis and -1
// for at most one other.
std::optional<std::vector<int64_t>> target_between(const SymbolicShape* from, const SymbolicShape* to) {
  if (!from || !to) return std::nullopt;
  std::vector<int64_t> target;
  bool copies = false, infers = false;
  for (size_t i = 0; i < to->size(); ++i) {
    const Dim& size = (*to)[i];
    if (size.is(0)) return std::nullopt;
    const bool stays = i < from->size() && size == (*from)[i];
    copies |= !size.is_known() && stays;
    if (!size.is_known() && !stays && std::exchange(infers, true)) return std::nullopt;
    target.push_back(size.is_known() ? size.value() : stays ? 0 : -1);
  }
  // A size of 0, which any symbolic one may be, leaves -1 without a meaning.
  return infers && copies ? std::nullopt : std::optional(target);
}

// Two nodes that change a shape, of any kinds, as one Reshape.
void merge_into_reshape(Editor& editor, const ir::Node& first, ir::Node& second) {
  if (!editor.is_only_user(*first.output(0))) return;
  auto target = target_between(editor.shape(first.input(0)), editor.shape(second.output(0)));
  if (!target) return;
  editor.rewrite(second, [&](Patch& patch) {
    patch.replace(second, *patch.add("Reshape", {first.input(0), patch.ints(*target)}));
  });
}

}  // namespace

bool only_changes_shape(const ir::Node& node) {
  const std::string& op = node.op_type;
  return node.domain.empty() && (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze");
}

bool shape_is_computed(Editor& editor, const ir::Node& node) {
  if (node.op_type == "Flatten" || (node.op_type == "Squeeze" && !node.input(1))) return true;
  return editor.values(node.input(1)).has_value();
}

std::optional<std::vector<int64_t>> added_axes(const SymbolicShape* from, const SymbolicShape* to) {
  if (!from || !to) return std::nullopt;
  std::vector<int64_t> axes;
  size_t next = 0;
  for (size_t i = 0; i < to->size(); ++i) {
    if (next < from->size() && (*from)[next] == (*to)[i])
      ++next;
    else if ((*to)[i].is(1))
      axes.push_back(static_cast<int64_t>(i));
    else
      return std::nullopt;
  }
  return next == from->size() ? std::optional(axes) : std::nullopt;
}

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
  if (node.op_type == "Unsqueeze" && inner->op_type == "Unsqueeze" && editor.is_only_user(input)) {
    if (auto axes = axes_of_both(editor, *inner, node)) {
      editor.rewrite(node, [&](Patch& patch) {
        patch.replace(node, *patch.add("Unsqueeze", {&source, patch.ints(*axes)}));
      });
    }
    return;
  }
  if (node.op_type != "Reshape") {
    merge_into_reshape(editor, *inner, node);
    return;
  }
  if (auto axes = added_axes(editor.shape(&source), editor.shape(&output))) {
    editor.rewrite(node, [&](Patch& patch) {
      patch.replace(node, *patch.add("Unsqueeze", {&source, patch.ints(*axes)}));
    });
    return;
  }
  // A 0 means the size that the inner node made.
  auto target = editor.ints(node.input(1));
  if (!target || (std::ranges::count(*target, 0) > 0 && node.int_attribute("allowzero", 0) == 0)) {
    merge_into_reshape(editor, *inner, node);
    return;
  }
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
  const SymbolicShape *input = editor.shape(node.input(0)), *output = editor.shape(node.output(0));
  if (!target || !input || !output || output->size() != target->size()) return;
  std::vector<int64_t> numbers;
  bool copies = false, infers = false;
  for (size_t i = 0; i < target->size(); ++i) {
    // A -1 may be known by what it makes.
    const Dim& size = (*target)[i].is(-1) ? (*output)[i] : (*target)[i];
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
  // Beside a size of 0, which any symbolic size may be when the model runs, -1 has no meaning. A model that has it all
  // the same keeps it.
  const bool had_it = std::ranges::any_of(*target, [](const Dim& size) { return size.is(-1); });
  if (infers && copies && !had_it) return;
  // The model checks the size that -1 takes as it comes, unless it cannot be another one.
  if (infers && !had_it && !(element_count(*input) == element_count(*output))) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add("Reshape", {node.input(0), patch.ints(numbers)}));
  });
}

}  // namespace tenon::passes
