#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// Whether the value is a constant with one number for each channel of a tensor of this rank: [channels, 1, 1] or
// [1, channels, 1, 1].
bool is_per_channel(const ir::Value* value, int rank, int64_t channels) {
  const Tensor* tensor = Editor::constant(value);
  const int axis = tensor ? tensor->rank() - (rank - 1) : -1;
  return axis >= 0 && axis <= 1 && tensor->elements() == channels && tensor->dim(axis) == channels;
}

// The other input of the only user, when that is per channel; `value` becomes its output.
ir::Value* take_per_channel(Editor& editor, const char* op, ir::Value*& value, int64_t channels) {
  ir::Node* user = sole_user(editor, value, op);
  ir::Value* other = user ? other_input(*user, value) : nullptr;
  if (!other || !is_per_channel(other, editor.rank(value), channels)) return nullptr;
  value = user->output(0);
  return other;
}

ir::Value* as_list(Patch& patch, ir::Value* value) { return patch.add("Reshape", {value, patch.ints({-1})}); }

// One number per group, for each channel of a group.
ir::Value* repeated(Patch& patch, ir::Value* per_group, int64_t groups, int64_t channels) {
  ir::Value* column = patch.add("Reshape", {per_group, patch.ints({groups, 1})});
  return as_list(patch, patch.add("Expand", {column, patch.ints({groups, channels / groups})}));
}

}  // namespace

// [batch, channels, …] as [batch, groups, …], normalised and shaped back; then a scale and a bias per channel, where
// they follow.
void fuse_group_norm(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), scale = constant(), bias = constant(),
                       norm = op("InstanceNormalization", {op("Reshape", {x, any()}), scale, bias}),
                       y = op("Reshape", {norm, any()});
  if (node.op_type != "Reshape") return;
  Match m = match(editor, y, node);
  if (!m || !editor.same_shape(m[x], node.output(0))) return;
  const SymbolicShape *shape = editor.shape(m[x]), *grouped = editor.shape(m[norm]);
  if (!shape || shape->size() < 3 || !grouped || grouped->size() < 3 || (*shape)[0] != (*grouped)[0]) return;
  if (!(*shape)[1].is_known() || !(*grouped)[1].is_known()) return;
  const int64_t channels = (*shape)[1].value(), groups = (*grouped)[1].value();
  if (groups < 1 || channels < 1 || channels % groups != 0) return;

  ir::Value* end = node.output(0);
  ir::Value* factor = take_per_channel(editor, "Mul", end, channels);
  ir::Value* addend = take_per_channel(editor, "Add", end, channels);
  const float epsilon = m.node(norm).float_attribute("epsilon", 1e-5f);
  ir::Node& last = *end->producer();
  editor.rewrite(last, [&](Patch& patch) {
    patch.name_after(m.node(norm));
    ir::Value *new_scale = repeated(patch, m[scale], groups, channels),
              *new_bias = repeated(patch, m[bias], groups, channels);
    if (factor) {
      ir::Value* factors = as_list(patch, factor);
      new_scale = patch.add("Mul", {new_scale, factors});
      new_bias = patch.add("Mul", {new_bias, factors});
    }
    if (addend) new_bias = patch.add("Add", {new_bias, as_list(patch, addend)});
    patch.replace(last, *patch.add("GroupNormalization", {m[x], new_scale, new_bias},
                                   {{"num_groups", groups}, {"epsilon", epsilon}}));
  });
}

}  // namespace tenon::passes
