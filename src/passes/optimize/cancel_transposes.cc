#include <array>
#include <map>

#include "passes/match.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

// Nodes between two transposes that cancel; more are not searched.
constexpr int most_nodes = 64;

bool is_elementwise(const ir::Node& node) {
  constexpr std::array ops = {"Abs",         "Neg",
                              "Sqrt",        "Exp",
                              "Log",         "Erf",
                              "Tanh",        "Sigmoid",
                              "Relu",        "Floor",
                              "Ceil",        "Round",
                              "Reciprocal",  "Sign",
                              "Not",         "Softplus",
                              "Softsign",    "HardSwish",
                              "Mish",        "HardSigmoid",
                              "LeakyRelu",   "Elu",
                              "Selu",        "Celu",
                              "Swish",       "Gelu",
                              "Clip",        "Cast",
                              "Add",         "Sub",
                              "Mul",         "Div",
                              "Pow",         "Max",
                              "Min",         "Sum",
                              "Mean",        "And",
                              "Or",          "Xor",
                              "Equal",       "Less",
                              "Greater",     "Where",
                              "LessOrEqual", "GreaterOrEqual",
                              "PRelu",       "Mod"};
  return std::ranges::find(ops, node.op_type) != ops.end();
}

bool is_softmax(const ir::Node& node) { return node.op_type == "Softmax" || node.op_type == "LogSoftmax"; }

bool is_reduction(const ir::Node& node) { return node.domain.empty() && node.op_type.starts_with("Reduce"); }

// Whether it multiplies rows by constant weights: then leading axes may have any order.
bool is_product_with_weights(Editor& editor, const ir::Node& node) {
  const bool is_fused = node.domain == ops::tenon_domain && node.op_type == "FusedMatMul";
  if (!is_fused && (node.op_type != "MatMul" || !node.domain.empty())) return false;
  return Editor::constant(node.input(1)) && editor.rank(node.input(1)) == 2 && node.int_attribute("transA", 0) == 0;
}

// The axes that a reduction goes over; nullopt when they are computed or none are given.
std::optional<std::vector<int64_t>> reduced_axes(Editor& editor, const ir::Node& node, int rank) {
  auto axes = editor.ints(node.input(1));
  if (!axes || axes->empty() || rank < 0) return std::nullopt;
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + rank : axis;
  return axes;
}

// Moves a Transpose up through the nodes above it, to where others undo it.
class Mover {
 public:
  Mover(Editor& editor, Permutation p) : editor_(editor), p_(std::move(p)) {}

  // Whether the transposed value can be had without a Transpose, and one less is left than before.
  bool can_move(const ir::Value* value) { return check(value) && cancelled_ > 0; }
  ir::Value* move(Patch& patch, ir::Value* value) { return moved(patch, value); }

 private:
  int rank() const { return static_cast<int>(p_.size()); }

  bool is_undone_by(const ir::Node* transpose) const {
    if (!transpose || !transpose->input(0)) return false;
    Permutation first = permutation_of(*transpose, rank());
    return !first.empty() && is_identity(combined(first, p_));
  }

  bool check(const ir::Value* value) {
    if (!value) return false;
    if (const Tensor* tensor = Editor::constant(value)) return tensor->rank() <= rank();
    if (is_undone_by(producer(value, "Transpose"))) {
      ++cancelled_;
      return true;
    }
    const ir::Node* node = value->producer();
    if (!node || !editor_.is_only_user(*value) || node->output_count() != 1) return false;
    if (editor_.rank(value) != rank() || ++visited_ > most_nodes) return false;
    if (is_product_with_weights(editor_, *node)) {
      const bool keeps_rows = p_.back() == rank() - 1 && editor_.rank(node->input(0)) == rank();
      return keeps_rows && check(node->input(0)) && (!node->input(3) || check(node->input(3)));
    }
    if (!node->domain.empty()) return false;
    if (is_elementwise(*node)) {
      // Clip's limits are scalars.
      const size_t count = node->op_type == "Clip" ? 1 : node->input_count();
      for (size_t i = 0; i < count; ++i) {
        if (!check(node->input(i))) return false;
      }
      return true;
    }
    if (is_reduction(*node)) {
      return node->int_attribute("keepdims", 1) != 0 && reduced_axes(editor_, *node, rank()) && check(node->input(0));
    }
    if (node->op_type == "Concat")
      return std::ranges::all_of(node->inputs(), [&](auto* input) { return check(input); });
    return is_softmax(*node) && check(node->input(0));
  }

  // The constant with all axes, permuted.
  ir::Value* moved_constant(Patch& patch, ir::Value* value) {
    const Tensor& tensor = *Editor::constant(value);
    if (tensor.elements() == 1) return value;
    Shape shape(rank(), 1);
    for (int axis = 0; axis < tensor.rank(); ++axis) shape[axis + rank() - tensor.rank()] = tensor.dim(axis);
    return patch.add("Transpose", {patch.constant(tensor.reshaped(shape))}, {{"perm", p_}});
  }

  ir::Value* moved(Patch& patch, ir::Value* value) {
    if (Editor::constant(value)) return moved_constant(patch, value);
    if (const ir::Node* transpose = producer(value, "Transpose"); is_undone_by(transpose)) return transpose->input(0);
    const ir::Node& node = *value->producer();
    std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
    if (is_product_with_weights(editor_, node)) {
      inputs[0] = moved(patch, inputs[0]);
      if (node.input(3)) inputs[3] = moved(patch, inputs[3]);
      patch.name_after(node);
      return patch.add_like(node, inputs).output(0);
    }
    const size_t count = node.op_type == "Clip" || is_reduction(node) ? 1 : inputs.size();
    for (size_t i = 0; i < count; ++i) inputs[i] = moved(patch, inputs[i]);
    patch.name_after(node);
    if (is_reduction(node)) {
      std::vector<int64_t> axes = *reduced_axes(editor_, node, rank());
      for (int64_t& axis : axes) axis = place_of(p_, axis);
      std::ranges::sort(axes);
      inputs[1] = patch.ints(axes);
      return patch.add_like(node, inputs).output(0);
    }
    if (is_elementwise(node)) return patch.add_like(node, inputs).output(0);
    const int64_t axis = node.int_attribute("axis", -1);
    return patch.add_like(node, inputs, {{"axis", place_of(p_, axis < 0 ? axis + rank() : axis)}}).output(0);
  }

  Editor& editor_;
  Permutation p_;
  int visited_ = 0, cancelled_ = 0;
};

}  // namespace

void cancel_transposes(Editor& editor, ir::Node& node) {
  if (node.op_type != "Transpose" || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  if (!editor.is_only_user(*node.input(0)) || producer(node.input(0), "Transpose")) return;
  const int rank = editor.rank(node.input(0));
  Permutation p = permutation_of(node, rank);
  if (rank < 2 || p.empty()) return;
  Mover mover(editor, p);
  if (!mover.can_move(node.input(0))) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *mover.move(patch, node.input(0))); });
}

// A reduction that drops axes needs no Transpose before it when the others stay in their order.
void reduce_without_transpose(Editor& editor, ir::Node& node) {
  if (!is_reduction(node) || !node.output(0) || node.int_attribute("keepdims", 1) != 0) return;
  const ir::Node* transpose = producer(node.input(0), "Transpose");
  const int rank = editor.rank(node.input(0));
  auto axes = reduced_axes(editor, node, rank);
  if (!transpose || !transpose->input(0) || !axes) return;
  const Permutation p = permutation_of(*transpose, rank);
  int64_t last = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (std::ranges::find(*axes, static_cast<int64_t>(i)) != axes->end()) continue;
    if (p[i] < last) return;
    last = p[i];
  }
  if (p.empty()) return;
  for (int64_t& axis : *axes) axis = p[static_cast<size_t>(axis)];
  std::ranges::sort(*axes);
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add_like(node, {transpose->input(0), patch.ints(*axes)}).output(0));
  });
}

}  // namespace tenon::passes
