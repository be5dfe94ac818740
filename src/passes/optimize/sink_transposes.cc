#include <array>

#include "passes/match.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

// From channels last, where rows of channels are normalised and multiplied by matrices, to channels first.
const Permutation to_channels_first = {0, 3, 1, 2}, to_channels_last = {0, 2, 3, 1};

bool is_arithmetic(const ir::Node& node) {
  constexpr std::array ops = {"Add", "Sub", "Mul", "Div"};
  return node.domain.empty() && std::ranges::find(ops, node.op_type) != ops.end() && node.input_count() == 2;
}

// What a Transpose to channels first brings there; null for other values.
ir::Value* before_transpose(const ir::Value* value) {
  const ir::Node* transpose = producer(value, "Transpose");
  if (!transpose || &transpose->graph() != &value->graph()) return nullptr;
  return permutation_of(*transpose, 4) == to_channels_first ? transpose->input(0) : nullptr;
}

// The sizes of a constant as they are before the Transpose; nullopt where its elements would move.
std::optional<Shape> shape_before(const Tensor& constant) {
  if (constant.rank() > 4) return std::nullopt;
  Shape first(4, 1), last(4, 1);
  int longer = 0;
  for (int axis = 0; axis < constant.rank(); ++axis) first[axis + 4 - constant.rank()] = constant.dim(axis);
  for (int axis = 0; axis < 4; ++axis) {
    longer += first[axis] != 1 ? 1 : 0;
    last[static_cast<int>(to_channels_first[static_cast<size_t>(axis)])] = first[axis];
  }
  return longer <= 1 ? std::optional(last) : std::nullopt;
}

// Whether it is a MatMul, with or without a bias and a scale, which can take a sum with another value along.
bool is_product(const ir::Value* value) {
  for (const char* op : {"Mul", "Add"}) {
    const ir::Node* node = producer(value, op);
    if (!node) continue;
    value = Editor::constant(node->input(0)) ? node->input(1) : node->input(0);
    if (!value) return false;
  }
  return producer(value, "MatMul") != nullptr;
}

// Whether it is an image that a convolution made.
bool is_convolved(Editor& editor, const ir::Value* value) {
  return editor.rank(value) == 4 && producer(value, "Conv") != nullptr;
}

// What `value` is before a Transpose to channels first, which is added where there is none.
ir::Value* channels_last(Patch& patch, ir::Value* value) {
  if (const Tensor* constant = Editor::constant(value))
    return constant->elements() == 1 ? value : patch.constant(constant->reshaped(*shape_before(*constant)));
  if (ir::Value* before = before_transpose(value)) return before;
  return patch.add("Transpose", {value}, {{"perm", to_channels_last}});
}

}  // namespace

// Arithmetic on images that were brought to channels first is done before they are, where MatMul and others can take it
// along. One Transpose comes, and at least one goes; or one more comes, and the sum goes into a MatMul.
void sink_transposes(Editor& editor, ir::Node& node) {
  if (!is_arithmetic(node) || !node.output(0)) return;
  bool any_goes = false, any_product = false, any_comes = false;
  for (const ir::Value* input : node.inputs()) {
    if (!input) return;
    if (const Tensor* constant = Editor::constant(input)) {
      if (!shape_before(*constant)) return;
    } else if (const ir::Value* before = before_transpose(input)) {
      const bool goes = editor.is_only_user(*input);
      any_goes = any_goes || goes;
      any_product = any_product || (goes && editor.is_only_user(*before) && is_product(before));
    } else if (node.op_type == "Add" && is_convolved(editor, input)) {
      any_comes = true;
    } else {
      return;
    }
  }
  if (!any_goes || (any_comes && !any_product)) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value *a = channels_last(patch, node.input(0)), *b = channels_last(patch, node.input(1));
    ir::Value* result = patch.add_like(node, {a, b}).output(0);
    patch.replace(node, *patch.add("Transpose", {result}, {{"perm", to_channels_first}}));
  });
}

}  // namespace tenon::passes
