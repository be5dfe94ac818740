#include "passes/match.h"
#include "passes/optimize/channels.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The node that a normalization's constants can go into: Conv and ConvTranspose with constant weights, MatMul of a
// matrix and Gemm with constant weights.
ir::Node* linear_producer(Editor& editor, const ir::Value* value) {
  for (const char* op : {"Conv", "ConvTranspose", "Gemm", "MatMul"}) {
    ir::Node* node = sole_producer(editor, value, op);
    if (!node) continue;
    return output_channels(*node) > 0 ? node : nullptr;
  }
  return nullptr;
}

}  // namespace

// With s = scale / sqrt(variance + epsilon): (w x + b - mean) s + shift is (w s) x + (b - mean) s + shift.
void fold_batch_norm(Editor& editor, ir::Node& node) {
  if (node.op_type != "BatchNormalization" || !node.domain.empty() || !node.output(0)) return;
  if (node.int_attribute("training_mode", 0) != 0) return;
  ir::Node* linear = linear_producer(editor, node.input(0));
  if (!linear) return;
  const int64_t channels = output_channels(*linear);
  const ElementType type = Editor::constant(linear->input(1))->type();
  for (size_t i = 1; i <= 4; ++i) {
    const Tensor* tensor = Editor::constant(node.input(i));
    if (!tensor || tensor->rank() != 1 || tensor->elements() != channels || tensor->type() != type) return;
  }
  if (editor.rank(node.input(0)) != output_rank(editor, *linear)) return;
  const float epsilon = node.float_attribute("epsilon", 1e-5f);
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(*linear);
    ir::Value* offset = patch.number(epsilon, type);
    ir::Value* deviation = patch.add("Sqrt", {patch.add("Add", {node.input(4), offset})});
    ir::Value* scale = patch.add("Div", {node.input(1), deviation});
    ir::Value* mean = node.input(3);
    ir::Value* bias = linear_bias(*linear);
    ir::Value* centred = bias ? patch.add("Sub", {bias, mean}) : patch.add("Neg", {mean});
    ir::Value* shift = patch.add("Add", {patch.add("Mul", {centred, scale}), node.input(2)});
    patch.replace(node, *with_weights(patch, *linear, scaled_weights(patch, *linear, scale), shift));
  });
}

}  // namespace tenon::passes
