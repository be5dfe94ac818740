#include "passes/optimize/blocked_nodes.h"

#include <algorithm>
#include <array>

#include "passes/match.h"
#include "passes/optimize/fusion.h"

namespace tenon::passes {
namespace {

bool is_one_of(const ir::Node& node, std::span<const char* const> names) {
  return node.domain.empty() && std::ranges::find(names, node.op_type) != names.end();
}

bool is_unary(const ir::Node& node) {
  static constexpr std::array names = {"Relu",      "Clip", "Sigmoid", "Tanh",     "HardSwish", "HardSigmoid",
                                       "LeakyRelu", "Elu",  "Mish",    "Softplus", "Swish",     "Gelu",
                                       "Abs",       "Neg",  "Sqrt",    "Exp",      "Identity"};
  return is_one_of(node, names);
}

bool is_binary(const ir::Node& node) {
  static constexpr std::array names = {"Add", "Sub", "Mul", "Div"};
  return is_one_of(node, names);
}

// Whether finite numbers give finite ones.
bool stays_finite(const ir::Node& node) {
  static constexpr std::array others = {"Exp", "Sqrt"};
  return !is_one_of(node, others);
}

bool is_channel_affine(const ir::Node& node) {
  return node.domain == ops::tenon_domain && node.op_type == "ChannelAffine" && !node.attribute("block");
}

// Products that kernels sum up in half precision.
constexpr int64_t most_half_products = 128;

bool is(const ir::Node& node, std::string_view op) { return node.domain.empty() && node.op_type == op; }

// A list of values for two spatial axes, with one more for the axis in the block.
std::vector<int64_t> with_inner_axis(const ir::Node& node, const char* attribute, int64_t inner) {
  std::vector<int64_t> values = node.ints_attribute(attribute);
  if (values.empty()) values = {1, 1};
  values.push_back(inner);
  return values;
}

}  // namespace

bool is_pool(const ir::Node& node) {
  static constexpr std::array names = {"MaxPool", "AveragePool"};
  return is_one_of(node, names);
}

// Channels of a group for which transforms are worth their time.
constexpr int64_t least_of_group = 32;

bool has_winograd_window(const ir::Node& conv, const Tensor& weights) {
  if (weights.rank() != 4 || weights.dim(2) != 3 || weights.dim(3) != 3) return false;
  const int64_t groups = conv.int_attribute("group", 1);
  const bool has_wide_groups = weights.dim(1) >= least_of_group && weights.dim(0) >= groups * least_of_group;
  return (groups == 1 || has_wide_groups) && are_all(conv.ints_attribute("strides"), 1);
}

// Whether it is an image whose channels fill blocks, or at least half of one.
bool BlockedNodes::is_image(const ir::Value* value) {
  if (!value || element_type(editor_, value) != type_) return false;
  const SymbolicShape* shape = editor_.shape(value);
  return shape && shape->size() == 4 && (*shape)[1].is_known() && (*shape)[1].value() >= block_ / 2;
}

int64_t BlockedNodes::channels_of(const ir::Value& image) { return (*editor_.shape(&image))[1].value(); }

bool BlockedNodes::fills_blocks(const ir::Value* value) { return is_image(value) && channels_of(*value) % block_ == 0; }

// Whether it is a constant that is one number, or one per channel.
bool BlockedNodes::is_per_channel(const ir::Value* value, int64_t channels) {
  const Tensor* tensor = Editor::constant(value);
  if (!tensor || tensor->rank() > 4) return false;
  if (tensor->elements() == 1) return true;
  const int rank = tensor->rank();
  return rank >= 3 && tensor->elements() == channels && tensor->dim(rank - 3) == channels;
}

bool BlockedNodes::is_conv(const ir::Node& node) const {
  const bool is_known_op = is(node, "Conv") || (node.domain == ops::tenon_domain && node.op_type == "FusedConv");
  return is_known_op && Editor::constant(node.input(1)) && Editor::constant(node.input(1))->rank() == 4;
}

bool BlockedNodes::is_conv_transpose(const ir::Node& node) const {
  return is(node, "ConvTranspose") && Editor::constant(node.input(1)) && Editor::constant(node.input(1))->rank() == 4;
}

// What the model is given is not worth filling up.
bool BlockedNodes::reads_plain(const ir::Node& node) {
  const ir::Value* x = node.input(0);
  return !is_image(x) || (!fills_blocks(x) && !x->producer());
}

bool BlockedNodes::can_conv_be_blocked(const ir::Node& node) {
  if (!is_image(node.output(0)) || editor_.rank(node.input(0)) != 4) return false;
  if (element_type(editor_, node.input(0)) != type_) return false;
  const Tensor& w = *Editor::constant(node.input(1));
  if (node.int_attribute("group", 1) == 1) return w.elements() > 0;
  if (reads_plain(node)) return false;
  if (!is_depthwise(node)) return type_ == ElementType::float32 && groups_of(node);
  // Those of half precision sum up in it.
  return type_ == ElementType::float32 || w.dim(2) * w.dim(3) <= most_half_products;
}

bool BlockedNodes::is_depthwise(const ir::Node& conv) {
  const Tensor& w = *Editor::constant(conv.input(1));
  const int64_t groups = conv.int_attribute("group", 1);
  return groups > 1 && groups == w.dim(0) && w.dim(1) == 1;
}

std::optional<ops::BlockedGroups> BlockedNodes::groups_of(const ir::Node& conv) const {
  const Tensor& w = *Editor::constant(conv.input(1));
  const int64_t groups = conv.int_attribute("group", 1);
  return groups < 1 ? std::nullopt : ops::blocked_groups(groups, w.dim(1), w.dim(0) / groups, block_);
}

bool BlockedNodes::can_conv_transpose_be_blocked(const ir::Node& node) {
  if (type_ != ElementType::float32 || !is_image(node.input(0)) || !is_image(node.output(0))) return false;
  const Tensor& w = *Editor::constant(node.input(1));
  if (w.elements() == 0 || node.int_attribute("group", 1) != 1 || !node.ints_attribute("output_shape").empty() ||
      node.string_attribute("auto_pad", "NOTSET") != "NOTSET" || !are_all(node.ints_attribute("dilations"), 1))
    return false;
  const std::vector<int64_t> pads = node.ints_attribute("pads", {0, 0, 0, 0});
  const std::vector<int64_t> strides = node.ints_attribute("strides", {1, 1});
  if (pads.size() != 4 || strides.size() != 2) return false;
  for (int d : {0, 1}) {
    const auto at = static_cast<size_t>(d);
    if (pads[at] > w.dim(d + 2) || strides[at] > ops::most_transposed_stride) return false;
  }
  return true;
}

bool BlockedNodes::can_elementwise_be_blocked(const ir::Node& node) {
  if (node.input_count() != 2) return false;
  const int64_t channels = channels_of(*node.output(0));
  if (is(node, "Div") && channels % block_ != 0 && !Editor::constant(node.input(1))) return false;
  bool any = false;
  for (const ir::Value* input : node.inputs()) {
    if (is_per_channel(input, channels)) continue;
    // Its channels are not broadcast, though its other axes may be.
    if (Editor::constant(input) || !is_image(input) || channels_of(*input) != channels) return false;
    any = true;
  }
  return any;
}

// Only the last may leave room in its last block.
bool BlockedNodes::can_concat_be_blocked(const ir::Node& node) {
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (i + 1 < node.input_count() ? !fills_blocks(node.input(i)) : !is_image(node.input(i))) return false;
  }
  return true;
}

// In blocks; empty where they do not fill them.
std::vector<int64_t> BlockedNodes::split_sizes(const ir::Node& node) {
  std::vector<int64_t> sizes;
  for (const ir::Value* output : node.outputs()) {
    if (!output || !fills_blocks(output)) return {};
    sizes.push_back(channels_of(*output) / block_);
  }
  return sizes;
}

// Whether it is the mean of each channel, as images of one pixel.
bool BlockedNodes::is_mean_of_channels(const ir::Node& node) {
  if (is(node, "GlobalAveragePool")) return true;
  if (!is(node, "ReduceMean") || node.int_attribute("keepdims", 1) == 0) return false;
  auto axes = editor_.ints(node.input(1));
  if (!axes) return false;
  for (int64_t& axis : *axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(*axes);
  return *axes == std::vector<int64_t>{2, 3};
}

bool BlockedNodes::can_be_blocked(const ir::Node& node) {
  if (is_conv(node)) return can_conv_be_blocked(node);
  if (is_conv_transpose(node)) return can_conv_transpose_be_blocked(node);
  if (node.output_count() == 0 || !node.output(0) || !is_image(node.output(0))) return false;
  if (is_binary(node)) return can_elementwise_be_blocked(node);
  const auto axis_is_channels = [&] {
    return node.int_attribute("axis", 0) == 1 || node.int_attribute("axis", 0) == -3;
  };
  if (is(node, "Concat")) return axis_is_channels() && can_concat_be_blocked(node);
  if (!is_image(node.input(0))) return false;
  if (is(node, "Split")) return axis_is_channels() && !split_sizes(node).empty();
  if (node.output_count() != 1) return false;
  if (is(node, "Resize")) {
    const Tensor* scales = Editor::constant(node.input(2));
    return scales && scales->elements() == 4 && scales->type() == ElementType::float32 && !node.input(3) &&
           scales->data<float>()[1] == 1 && !node.attribute("axes") &&
           node.string_attribute("mode", "nearest") == "nearest" &&
           node.string_attribute("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
  }
  if (is_unary(node)) return stays_finite(node) || fills_blocks(node.input(0));
  return is_pool(node) || is_mean_of_channels(node) || (is_channel_affine(node) && type_ == ElementType::float32);
}

std::vector<size_t> BlockedNodes::image_inputs(const ir::Node& node) {
  if (is_conv(node)) {
    std::vector<size_t> inputs;
    if (!reads_plain(node)) inputs.push_back(0);
    if (node.input(3)) inputs.push_back(3);
    return inputs;
  }
  std::vector<size_t> inputs;
  const bool all = is_binary(node) || is(node, "Concat");
  for (size_t i = 0; i < (all ? node.input_count() : 1); ++i) {
    if (!is_binary(node) || !Editor::constant(node.input(i))) inputs.push_back(i);
  }
  return inputs;
}

// A constant of one number per channel as a blocked image of one pixel; other values as they are.
ir::Value* BlockedNodes::blocked_constant(Patch& patch, ir::Value* value, float filling) {
  const Tensor* tensor = Editor::constant(value);
  if (!tensor || tensor->elements() == 1) return value;
  Tensor result(type_, Shape{1, filled_up(tensor->elements()) / block_, 1, 1, block_});
  const auto fill = [&]<class T>() {
    std::ranges::fill(result.mutable_data<T>(), T(filling));
    std::ranges::copy(tensor->data<T>(), result.mutable_data<T>().begin());
  };
  if (type_ == ElementType::float16)
    fill.template operator()<float16>();
  else
    fill.template operator()<float>();
  return patch.constant(std::move(result));
}

ir::Node& BlockedNodes::add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images) {
  std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
  const std::vector<size_t> places = image_inputs(node);
  for (size_t i = 0; i < places.size(); ++i) inputs[places[i]] = images[i];
  if (is_conv(node)) {
    const int64_t plain = reads_plain(node) ? 1 : 0;
    ir::Value* conv = plain ? patch.add_fused("BlockedConv", node, inputs, {{"block", block_}, {"plain_input", plain}})
                            : patch.add_fused("BlockedConv", node, inputs, {{"block", block_}});
    return *conv->producer();
  }
  if (is_conv_transpose(node))
    return *patch.add_fused("BlockedConvTranspose", node, inputs, {{"block", block_}})->producer();
  if (is_channel_affine(node)) return patch.add_like(node, inputs, {{"block", block_}});
  if (is_pool(node)) {
    std::vector<int64_t> pads = node.ints_attribute("pads");
    if (pads.size() != 4) pads = {0, 0, 0, 0};
    pads = {pads[0], pads[1], 0, pads[2], pads[3], 0};
    const auto kernel = with_inner_axis(node, "kernel_shape", 1), strides = with_inner_axis(node, "strides", 1);
    const auto dilations = with_inner_axis(node, "dilations", 1);
    const bool is_auto = node.string_attribute("auto_pad", "NOTSET") != "NOTSET";
    if (is_auto)
      return patch.add_like(node, inputs, {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}});
    return patch.add_like(node, inputs,
                          {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  }
  if (is_mean_of_channels(node))
    return *patch.add("ReduceMean", {inputs[0], patch.ints({2, 3})}, {{"keepdims", 1}})->producer();
  if (is(node, "Resize")) {
    const auto scales = Editor::constant(node.input(2))->data<float>();
    return patch.add_like(node, {inputs[0], nullptr,
                                 patch.constant(Tensor(Shape{5}, {scales[0], scales[1], scales[2], scales[3], 1.0f}))});
  }
  if (is(node, "Split"))
    return patch.add_node("Split", {inputs[0], patch.ints(split_sizes(node))}, {{"axis", 1}}, node.output_count());
  if (is(node, "Concat")) return patch.add_like(node, inputs, {{"axis", 1}});
  if (is_binary(node)) {
    for (ir::Value*& input : inputs) input = blocked_constant(patch, input, is(node, "Div") ? 1.0f : 0.0f);
  }
  return patch.add_like(node, inputs);
}

}  // namespace tenon::passes
