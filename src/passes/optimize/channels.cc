#include "passes/optimize/channels.h"

namespace tenon::passes {

bool is_per_channel(const ir::Value* value, int rank, int axis, int64_t channels) {
  const Tensor* tensor = Editor::constant(value);
  if (!tensor || tensor->rank() > rank) return false;
  if (tensor->elements() == 1) return true;
  if (tensor->elements() != channels) return false;
  const int at = axis - (rank - tensor->rank());  // shapes line up from the right
  return at >= 0 && tensor->dim(at) == channels;
}

ir::Value* on_axis(Patch& patch, ir::Value* value, int rank, int axis) {
  const Tensor& tensor = *Editor::constant(value);
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(axis)] = tensor.elements();
  return patch.constant(tensor.reshaped(Shape(sizes)));
}

int64_t output_channels(const ir::Node& conv) {
  const Tensor* weights = Editor::constant(conv.input(1));
  if (!weights || weights->rank() < 3) return 0;
  if (conv.input(2) && !Editor::constant(conv.input(2))) return 0;
  // The channels of a grouped ConvTranspose are spread over two axes of its weights.
  if (conv.op_type == "ConvTranspose" && conv.int_attribute("group", 1) != 1) return 0;
  return weights->dim(weight_axis(conv));
}

int weight_axis(const ir::Node& conv) { return conv.op_type == "ConvTranspose" ? 1 : 0; }

}  // namespace tenon::passes
