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
  if (node.op_type != "BatchNormalization" || !node.domain.empty()) return;
  ir::Node* linear = linear_producer(editor, node.input(0));
  if (!linear) return;
  if (!is_constant_batch_norm(node, output_channels(*linear), Editor::constant(linear->input(1))->type())) return;
  if (editor.rank(node.input(0)) != output_rank(editor, *linear)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.name_after(*linear);
    ir::Value* scale = batch_norm_scale(patch, node);
    ir::Value* shift = batch_norm_shift(patch, node, scale, linear_bias(*linear));
    patch.replace(node, *with_weights(patch, *linear, scaled_weights(patch, *linear, scale), shift));
  });
}

}  // namespace tenon::passes
