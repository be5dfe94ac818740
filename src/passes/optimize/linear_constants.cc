#include "passes/match.h"
#include "passes/optimize/channels.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

const Pattern x = any(), w = constant(), b = maybe(), c = constant();
const Pattern image = either(op("Conv", {x, w, b}), op("ConvTranspose", {x, w, b}));
const Pattern rows = either(op("Gemm", {x, w, b}), op("MatMul", {x, w}));
const Pattern linear = either(image, rows);

// A bias that is one number for all channels, as a list of one per channel.
ir::Value* per_channel(Patch& patch, ir::Value* value, int64_t channels) {
  ir::Value* list = as_list(patch, value);
  if (Editor::constant(list)->elements() == channels) return list;
  return patch.add("Expand", {list, patch.ints({channels})});
}

}  // namespace

// (w x + b) * c is (w * c) x + b * c, also where b is added to what no Gemm takes.
void scale_weights(Editor& editor, ir::Node& node) {
  static const Pattern d = constant(), scaled = either(linear * c, (linear + d) * c);
  if (node.op_type != "Mul") return;
  Match m = match(editor, scaled, node);
  if (!m) return;
  const ir::Node& old = m.node(linear);
  if (output_channels(old) == 0 || !is_per_channel(editor, m[c], old)) return;
  if (m[d] && !is_per_channel(editor, m[d], old)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(old);
    ir::Value* scale = as_list(patch, m[c]);
    ir::Value* bias = linear_bias(old) ? patch.add("Mul", {linear_bias(old), scale}) : nullptr;
    ir::Value* result = with_weights(patch, old, scaled_weights(patch, old, scale), bias);
    if (m[d]) result = patch.add("Add", {result, patch.add("Mul", {m[d], editor.rank(m[d]) == 1 ? scale : m[c]})});
    patch.replace(node, *result);
  });
}

// (w x + b) + c is w x + (b + c).
void add_to_bias(Editor& editor, ir::Node& node) {
  static const Pattern shifted = linear + c;
  if (node.op_type != "Add") return;
  Match m = match(editor, shifted, node);
  if (!m) return;
  const ir::Node& old = m.node(linear);
  const int64_t channels = output_channels(old);
  if (channels == 0 || !is_per_channel(editor, m[c], old)) return;
  // Only matrices have a Gemm.
  if (old.op_type == "MatMul" && editor.rank(old.input(0)) != 2) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(old);
    ir::Value* shift = per_channel(patch, m[c], channels);
    ir::Value* bias = linear_bias(old) ? patch.add("Add", {linear_bias(old), shift}) : shift;
    patch.replace(node, *with_weights(patch, old, old.input(1), bias));
  });
}

// x @ w + b with computed weights.
void add_bias_to_matmul(Editor& editor, ir::Node& node) {
  static const Pattern weights = any(), product = op("MatMul", {x, weights}), sum = product + c;
  if (node.op_type != "Add") return;
  Match m = match(editor, sum, node);
  if (!m || editor.rank(m[x]) != 2 || editor.rank(m[weights]) != 2 || editor.rank(m[c]) > 2) return;
  if (!ops::types::floats.contains(editor.fact(*m[x]).type.element)) return;
  if (!editor.same_shape(node.output(0), m[product])) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(m.node(product));
    patch.replace(node, *patch.add("Gemm", {m[x], m[weights], m[c]}));
  });
}

}  // namespace tenon::passes
