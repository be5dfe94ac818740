#include <tuple>
#include <utility>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// Whether the value has the shape of x or of its last axes, at least of the last `axes` of them, so that adding it to x
// adds the same rows over and over again.
bool repeats_over(Editor& editor, const ir::Value* value, const SymbolicShape& x, size_t axes) {
  const SymbolicShape* own = editor.shape(value);
  if (!own || own->size() < axes || own->size() > x.size()) return false;
  bool repeats = false;
  for (size_t i = 1; i <= own->size(); ++i) {
    const Dim &size = (*own)[own->size() - i], &wanted = x[x.size() - i];
    repeats = repeats || (i > axes && size == Dim(1) && wanted != Dim(1));
    if (size != (repeats ? Dim(1) : wanted)) return false;
  }
  return true;
}

// What is normalised: x + skip + bias, where the bias may be null.
struct Sum {
  ir::Value* x = nullptr;
  ir::Value* skip = nullptr;
  ir::Value* bias = nullptr;
};

// The two inputs of an Add whose result is of this shape: the one that has it first.
Sum sum_of(Editor& editor, const ir::Node& add, const SymbolicShape& shape, size_t axes) {
  for (size_t i : {0, 1}) {
    const SymbolicShape* own = editor.shape(add.input(i));
    if (own && *own == shape && repeats_over(editor, add.input(1 - i), shape, axes))
      return {add.input(i), add.input(1 - i)};
  }
  return {};
}

// An Add before the last one.
void take_bias(Editor& editor, Sum& sum, const SymbolicShape& shape, size_t axes) {
  if (ir::Node* add = sole_producer(editor, sum.x, "Add")) {
    if (Sum inner = sum_of(editor, *add, shape, axes); inner.x) {
      sum.x = inner.x;
      sum.bias = inner.skip;
    }
  } else if (add = sole_producer(editor, sum.skip, "Add"); add) {
    const bool fit =
        repeats_over(editor, add->input(0), shape, axes) && repeats_over(editor, add->input(1), shape, axes);
    if (fit) std::tie(sum.skip, sum.bias) = std::pair(add->input(0), add->input(1));
  }
}

// Whether the value is a constant of exactly the normalised sizes, as the new node, which stands where the Add does,
// wants its scale and bias.
bool is_row(Editor& editor, const ir::Value* value, const SymbolicShape& shape, size_t axes) {
  const SymbolicShape* own = editor.shape(value);
  return Editor::constant(value) && own && own->size() == axes && repeats_over(editor, value, shape, axes);
}

}  // namespace

// Add, then LayerNormalization or RMSNormalization; the sum is a second output where it is used elsewhere. It comes
// after the epilogues of MatMul and Conv: a product that is stored with its residual is read once here. The other way
// round it is stored without, and two tensors are read.
void fuse_skip_norm(Editor& editor, ir::Node& node) {
  const bool centered = node.op_type == "LayerNormalization";
  if ((!centered && node.op_type != "RMSNormalization") || !node.domain.empty()) return;
  if (node.output(1) || node.output(2) || !has_fused_type(editor, node.output(0))) return;
  ir::Node* add = producer(node.input(0), "Add");
  if (!add || &add->graph() != &node.graph() ||
      element_type(editor, node.input(0)) != element_type(editor, node.output(0)))
    return;
  const SymbolicShape* shape = editor.shape(node.input(0));
  if (!shape) return;
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t axis = node.int_attribute("axis", -1);
  const auto axes = static_cast<size_t>(axis < 0 ? -axis : rank - axis);
  if (!is_row(editor, node.input(1), *shape, axes)) return;
  if (node.input(2) && !is_row(editor, node.input(2), *shape, axes)) return;
  Sum sum = sum_of(editor, *add, *shape, axes);
  if (!sum.x) return;
  take_bias(editor, sum, *shape, axes);

  const bool used = !editor.is_only_user(*add->output(0));
  std::vector<ir::Value*> inputs = {sum.x, sum.skip, node.input(1)};
  if (centered) inputs.push_back(node.input(2));
  inputs.push_back(sum.bias);
  editor.rewrite(*add, [&](Patch& patch) {
    patch.name_after(node);
    ir::Node& fused =
        patch.add_node(centered ? "SkipLayerNormalization" : "SkipRMSNormalization", inputs,
                       {{"axis", -static_cast<int64_t>(axes)}, {"epsilon", node.float_attribute("epsilon", 1e-5f)}},
                       used ? 2 : 1, std::string(ops::tenon_domain));
    patch.replace(node, *fused.output(0));
    if (used) patch.replace(*add, *fused.output(1));
  });
}

}  // namespace tenon::passes
