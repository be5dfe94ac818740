#include <cmath>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

// The matrices before a Transpose of their last two axes alone; null when there is none that only this product needs.
ir::Value* before_transpose(Editor& editor, ir::Value* value) {
  ir::Node* transpose = sole_producer(editor, value, "Transpose");
  const int rank = transpose ? editor.rank(transpose->input(0)) : -1;
  if (rank < 2) return nullptr;
  Permutation order = permutation_of(*transpose, rank);
  if (order.empty()) return nullptr;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return is_identity(order) ? transpose->input(0) : nullptr;
}

// The factor of a Mul or Div of `value` by one number that does not change its shape.
std::optional<double> factor_of(Editor& editor, const ir::Node& node, const ir::Value* value) {
  if (!node.domain.empty() || (node.op_type != "Mul" && node.op_type != "Div")) return std::nullopt;
  if (node.op_type == "Div" && node.input(0) != value) return std::nullopt;
  const ir::Value* number = other_input(node, value);
  if (number == value || !is_number(number) || editor.rank(number) > editor.rank(value)) return std::nullopt;
  const double factor = *uniform_constant(number);
  return node.op_type == "Mul" ? factor : 1 / factor;
}

// A side of the product: what it is without a factor and without a Transpose, in either order.
struct Side {
  ir::Value* value;
  bool transposed = false;
  double factor = 1;
};

Side side_of(Editor& editor, ir::Value* value) {
  Side side{value};
  for (bool more = true; more;) {
    more = false;
    if (ir::Value* before = before_transpose(editor, side.value)) {
      side.value = before;
      side.transposed = !side.transposed;
      more = true;
    }
    ir::Node* node = editor.is_only_user(*side.value) ? side.value->producer() : nullptr;
    for (size_t i : {0, 1}) {
      if (!node || node->input_count() != 2 || Editor::constant(node->input(i))) continue;
      const auto factor = factor_of(editor, *node, node->input(i));
      if (!factor) continue;
      side.value = node->input(i);
      side.factor *= *factor;
      more = true;
      break;
    }
  }
  return side;
}

// Whether the product may be the scores of an attention, which the pass of that name takes as a whole once it knows
// enough of the shapes.
bool may_be_scores(Editor& editor, const ir::Value* value) {
  if (editor.rank(value) != 4) return false;
  constexpr int most_steps = 8;
  for (int step = 0; step < most_steps && value && editor.is_only_user(*value); ++step) {
    const ir::Node& user = *value->users()[0];
    if (user.op_type == "Softmax") return true;
    value = user.output(0);
  }
  return false;
}

}  // namespace

// A MatMul of computed matrices, transposed and scaled before or scaled after.
void transpose_in_matmul(Editor& editor, ir::Node& node) {
  if (node.op_type != "MatMul" || !node.domain.empty() || Editor::constant(node.input(1))) return;
  if (!has_fused_type(editor, node.output(0))) return;
  if (editor.rank(node.input(0)) < 2 || editor.rank(node.input(1)) < 2) return;
  if (may_be_scores(editor, node.output(0))) return;
  const Side a = side_of(editor, node.input(0)), b = side_of(editor, node.input(1));
  double alpha = a.factor * b.factor;
  ir::Value* end = node.output(0);
  if (editor.is_only_user(*end)) {
    const ir::Node& user = *end->users()[0];
    const auto factor = &user.graph() == &node.graph() ? factor_of(editor, user, end) : std::nullopt;
    if (factor) {
      alpha *= *factor;
      end = user.output(0);
    }
  }
  if (a.value == node.input(0) && b.value == node.input(1) && end == node.output(0)) return;
  const auto scale = static_cast<float>(alpha);
  if (!std::isnormal(scale)) return;
  ir::Node& last = *end->producer();
  editor.rewrite(last, [&](Patch& patch) {
    patch.name_after(node);
    patch.replace(last,
                  *patch.add("FusedMatMul", {a.value, b.value},
                             {{"transA", int64_t{a.transposed}}, {"transB", int64_t{b.transposed}}, {"alpha", scale}},
                             std::string(ops::tenon_domain)));
  });
}

// Constant weights of a product that rounds to TF32, column after column: tensor cores read them that way alone, and
// whoever multiplies would have to turn them around in every run.
void transpose_weights(Editor& editor, ir::Node& node) {
  const bool is_plain = node.op_type == "MatMul" && node.domain.empty();
  const bool is_fused = node.op_type == "FusedMatMul" && node.domain == ops::tenon_domain;
  if (!editor.target().rounds_float32 || (!is_plain && !is_fused)) return;
  const Tensor* weights = Editor::constant(node.input(1));
  if (!weights || weights->type() != ElementType::float32 || weights->rank() != 2 || editor.rank(node.input(0)) < 2)
    return;
  if (node.int_attribute("transB", 0) != 0 || !editor.is_only_user(*node.input(1))) return;
  editor.rewrite(node, [&](Patch& patch) {
    std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[1] = patch.add("Transpose", {inputs[1]}, {{"perm", std::vector<int64_t>{1, 0}}});
    patch.replace(
        node, is_fused ? *patch.add_like(node, inputs, {{"transB", int64_t{1}}}).output(0)
                       : *patch.add("FusedMatMul", inputs, {{"transB", int64_t{1}}}, std::string(ops::tenon_domain)));
  });
}

}  // namespace tenon::passes
