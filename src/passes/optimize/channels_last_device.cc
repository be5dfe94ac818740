#include <algorithm>
#include <array>

#include "passes/optimize/channels_last.h"
#include "passes/optimize/fusion.h"

namespace tenon::passes {
namespace {

// In picoseconds on a GPU of a data center: starting a kernel, moving a thousand elements, and what a thousand
// multiply-adds of tensor cores take less with channels last, where nothing is turned before and afterwards.
constexpr double kernel_start = 2e6, moved_elements = 1500, saved_products = 25;
// Where a conversion moves nothing, it still keeps nodes on both sides of it from being fused.
constexpr double view = 1;

bool is(const ir::Node& node, std::string_view op, std::string_view domain = "") {
  return node.op_type == op && node.domain == domain;
}

bool is_conv(const ir::Node& node) { return is(node, "Conv") || is(node, "FusedConv", ops::tenon_domain); }
bool is_pool(const ir::Node& node) { return is(node, "MaxPool") || is(node, "AveragePool"); }

// Elementwise, of one or two images.
bool is_elementwise(const ir::Node& node) {
  constexpr std::array ops = {"Relu", "Sigmoid", "Tanh",      "HardSwish", "HardSigmoid", "Swish", "Gelu", "Elu",
                              "Clip", "Mish",    "LeakyRelu", "Add",       "Sub",         "Mul",   "Div",  "Cast"};
  return node.domain.empty() && std::ranges::find(ops, node.op_type) != ops.end();
}

class DeviceRules final : public ChannelsLastRules {
 public:
  explicit DeviceRules(Editor& editor) : editor_(editor) {}

  bool can_change(const ir::Node& node) override {
    if (node.output_count() == 0 || !is_image(node.output(0))) return false;
    if (is_conv(node)) {
      return is_image(node.input(0)) && Editor::constant(node.input(1)) && has_fused_type(editor_, node.output(0)) &&
             (!node.input(3) || is_image(node.input(3)));
    }
    if (is_pool(node))
      return node.output_count() == 1 && is_image(node.input(0)) && has_fused_type(editor_, node.output(0));
    if (is(node, "GlobalAveragePool")) return is_image(node.input(0));
    if (is(node, "Concat"))
      return is_axis_of_channels(node) && std::ranges::all_of(node.inputs(), [&](auto* x) { return is_image(x); });
    if (!is_elementwise(node)) return false;
    const size_t count = operands(node);
    for (size_t i = 0; i < count; ++i) {
      if (!is_number(node.input(i)) && !is_image(node.input(i))) return false;
    }
    return !image_inputs(node).empty();
  }

  // Products of float32 that are not rounded do not run on tensor cores, and have no use for it.
  bool is_reason(const ir::Node& node) override {
    return is_conv(node) &&
           (element_type(editor_, node.output(0)) != ElementType::float32 || editor_.target().rounds_float32);
  }

  std::vector<size_t> image_inputs(const ir::Node& node) override {
    std::vector<size_t> images;
    if (is_conv(node)) {
      images.push_back(0);
      if (node.input(3)) images.push_back(3);
      return images;
    }
    const size_t count = is(node, "Concat") ? node.input_count() : operands(node);
    for (size_t i = 0; i < count; ++i) {
      if (!is_number(node.input(i))) images.push_back(i);
    }
    return images;
  }

  double gain(const ir::Node& node) override {
    if (!is_reason(node)) return 0;
    const Tensor& w = *Editor::constant(node.input(1));
    const double products = likely_elements(*editor_.shape(node.output(0))) * static_cast<double>(w.elements()) /
                            static_cast<double>(std::max<int64_t>(1, w.dim(0)));
    return kernel_start + products * saved_products / 1000;
  }

  double conversion(const ir::Value& value) override {
    const SymbolicShape& shape = *editor_.shape(&value);
    const bool moves_nothing = shape[2].is(1) && shape[3].is(1);
    return moves_nothing ? view : kernel_start + moved_elements / 1000 * likely_elements(shape);
  }

  ir::Node& add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images) override {
    std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
    const std::vector<size_t> places = image_inputs(node);
    for (size_t i = 0; i < places.size(); ++i) inputs[places[i]] = images[i];
    if (is_conv(node)) {
      inputs[1] = patch.add("Transpose", {inputs[1]}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
      return *patch.add_fused("ChannelsLastConv", node, inputs, {})->producer();
    }
    if (is_pool(node)) return *patch.add_fused("ChannelsLast" + node.op_type, node, inputs, {})->producer();
    if (is(node, "GlobalAveragePool"))
      return *patch.add("ReduceMean", {inputs[0], patch.ints({1, 2})}, {{"keepdims", 1}})->producer();
    if (is(node, "Concat")) return patch.add_like(node, inputs, {{"axis", 3}});
    return patch.add_like(node, inputs);
  }

 private:
  // Clip's limits are numbers of their own.
  static size_t operands(const ir::Node& node) {
    const bool is_binary =
        node.op_type == "Add" || node.op_type == "Sub" || node.op_type == "Mul" || node.op_type == "Div";
    return is_binary ? 2 : 1;
  }

  bool is_image(const ir::Value* value) {
    if (!value || Editor::constant(value) || !is_float(editor_, value)) return false;
    const SymbolicShape* shape = editor_.shape(value);
    return shape && shape->size() == 4 && (*shape)[1].is_known();
  }

  static bool is_axis_of_channels(const ir::Node& node) {
    const int64_t axis = node.int_attribute("axis", 0);
    return axis == 1 || axis == -3;
  }

  Editor& editor_;
};

}  // namespace

std::unique_ptr<ChannelsLastRules> channels_last_on_device(Editor& editor) {
  return std::make_unique<DeviceRules>(editor);
}

}  // namespace tenon::passes
