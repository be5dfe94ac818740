#include "passes/optimize/channels.h"

namespace tenon::passes {
namespace {

bool is_conv(const ir::Node& node) { return node.op_type == "Conv" || node.op_type == "ConvTranspose"; }

// The axis of the weights that is the channels of the output.
int weight_axis(const ir::Node& linear) {
  if (linear.op_type == "Conv") return 0;
  if (linear.op_type == "ConvTranspose") return 1;
  return linear.op_type == "Gemm" && linear.int_attribute("transB", 0) != 0 ? 0 : 1;
}

// The axis of the output that is its channels; both for images and for rows it is the second.
constexpr int channel_axis = 1;

}  // namespace

int64_t output_channels(const ir::Node& linear) {
  const Tensor *weights = Editor::constant(linear.input(1)), *bias = Editor::constant(linear.input(2));
  if (!weights || (linear.input(2) && !bias)) return 0;
  if (!ops::types::floats.contains(weights->type())) return 0;
  if (is_conv(linear) ? weights->rank() < 3 : weights->rank() != 2) return 0;
  // The channels of a grouped ConvTranspose are spread over two axes of its weights.
  if (linear.op_type == "ConvTranspose" && linear.int_attribute("group", 1) != 1) return 0;
  const int64_t channels = weights->dim(weight_axis(linear));
  if (linear.op_type == "Gemm") {
    if (linear.float_attribute("alpha", 1) != 1 || linear.float_attribute("beta", 1) != 1) return 0;
    if (bias && (bias->elements() != channels || bias->rank() < 1 || bias->dim(bias->rank() - 1) != channels)) return 0;
  }
  return channels;
}

int output_rank(Editor& editor, const ir::Node& linear) {
  return is_conv(linear) ? Editor::constant(linear.input(1))->rank() : editor.rank(linear.output(0));
}

ir::Value* linear_bias(const ir::Node& linear) { return linear.input(2); }

bool is_per_channel(Editor& editor, const ir::Value* value, const ir::Node& linear) {
  const Tensor* tensor = Editor::constant(value);
  const int rank = output_rank(editor, linear);
  if (!tensor || rank < 2 || tensor->rank() > rank) return false;
  if (tensor->elements() == 1) return true;
  const int64_t channels = output_channels(linear);
  // Shapes line up from the right. A MatMul's columns are last, whatever comes before.
  const int axis = (is_conv(linear) ? channel_axis : rank - 1) - (rank - tensor->rank());
  return tensor->elements() == channels && axis >= 0 && tensor->dim(axis) == channels;
}

ir::Value* as_list(Patch& patch, const ir::Value* value) {
  const Tensor& tensor = *Editor::constant(value);
  return patch.constant(tensor.reshaped(Shape{tensor.elements()}));
}

ir::Value* scaled_weights(Patch& patch, const ir::Node& linear, ir::Value* scale) {
  const int rank = Editor::constant(linear.input(1))->rank();
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(weight_axis(linear))] = -1;
  return patch.add("Mul", {linear.input(1), patch.add("Reshape", {scale, patch.ints(sizes)})});
}

ir::Value* with_weights(Patch& patch, const ir::Node& linear, ir::Value* weights, ir::Value* bias) {
  if (linear.op_type == "MatMul" && bias) return patch.add("Gemm", {linear.input(0), weights, bias});
  return patch.add_like(linear, {linear.input(0), weights, bias}).output(0);
}

bool is_constant_batch_norm(const ir::Node& node, int64_t channels, ElementType type) {
  if (node.op_type != "BatchNormalization" || !node.domain.empty() || !node.output(0)) return false;
  if (node.int_attribute("training_mode", 0) != 0) return false;
  for (size_t i = 1; i <= 4; ++i) {
    const Tensor* tensor = Editor::constant(node.input(i));
    if (!tensor || tensor->rank() != 1 || tensor->elements() != channels || tensor->type() != type) return false;
  }
  return true;
}

ir::Value* batch_norm_scale(Patch& patch, const ir::Node& norm) {
  const ElementType type = Editor::constant(norm.input(4))->type();
  ir::Value* offset = patch.number(norm.float_attribute("epsilon", 1e-5f), type);
  ir::Value* deviation = patch.add("Sqrt", {patch.add("Add", {norm.input(4), offset})});
  return patch.add("Div", {norm.input(1), deviation});
}

ir::Value* batch_norm_shift(Patch& patch, const ir::Node& norm, ir::Value* scale, ir::Value* bias) {
  ir::Value* mean = norm.input(3);
  ir::Value* centred = bias ? patch.add("Sub", {bias, mean}) : patch.add("Neg", {mean});
  return patch.add("Add", {patch.add("Mul", {centred, scale}), norm.input(2)});
}

}  // namespace tenon::passes
