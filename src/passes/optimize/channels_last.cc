#include <algorithm>
#include <array>

#include "base/byte_layout.h"
#include "ops/qlinear/qlinear.h"
#include "passes/match.h"
#include "passes/optimize/channels_last.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

const Permutation to_first = {0, 3, 1, 2}, to_last = {0, 2, 3, 1};
const std::string microsoft(ops::microsoft);

// What a convolution takes in nanoseconds per thousand multiply-adds with channels first, and last.
constexpr double first_rate = 24, last_rate = 15;
// What it takes to change the layout of a value, and per thousand bytes.
constexpr double conversion_start = 500, conversion_rate = 120;
// More than any conversion costs: a device has tensor cores for channels last alone.
constexpr double gain_on_device = 1e15;

bool is(const ir::Node& node, std::string_view domain, std::initializer_list<std::string_view> ops) {
  return node.domain == domain && std::ranges::find(ops, node.op_type) != ops.end();
}
bool is_arithmetic(const ir::Node& node) { return is(node, ops::microsoft, {"QLinearAdd", "QLinearMul"}); }
bool is_pool(const ir::Node& node) { return is(node, ops::microsoft, {"QLinearGlobalAveragePool"}); }
bool is_look_up(const ir::Node& node) { return is(node, ops::tenon_domain, {"LookUp"}); }
bool is_max_pool(const ir::Node& node) { return is(node, "", {"MaxPool"}); }

// Images of codes.
class CodesRules final : public ChannelsLastRules {
 public:
  explicit CodesRules(Editor& editor) : editor_(editor) {}

  bool can_change(const ir::Node& node) override {
    if (node.output_count() == 0 || !std::ranges::all_of(node.outputs(), [&](auto* y) { return is_image(y); }))
      return false;
    if (is_reason(node)) return is_image(node.input(0)) && why_not(node).empty();
    if (is_arithmetic(node)) {
      return is_operand(node.input(0)) && is_operand(node.input(3)) && !image_inputs(node).empty();
    }
    if (is_pool(node)) return is_image(node.input(0)) && node.int_attribute("channels_last", 0) == 0;
    if (is_look_up(node)) return is_image(node.input(0));
    if (is_max_pool(node)) return node.output_count() == 1 && is_image(node.input(0));
    if (is(node, "", {"Concat"}))
      return is_axis_of_channels(node) && std::ranges::all_of(node.inputs(), [&](auto* x) { return is_image(x); });
    if (is(node, "", {"Split"})) return is_axis_of_channels(node) && is_image(node.input(0));
    return is(node, "", {"Resize"}) && is_image(node.input(0)) && resize_scales(node);
  }

  bool is_reason(const ir::Node& node) override { return is(node, "", {"QLinearConv"}); }

  std::vector<size_t> image_inputs(const ir::Node& node) override {
    if (is(node, "", {"Concat"})) {
      std::vector<size_t> all(node.input_count());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      return all;
    }
    if (!is_arithmetic(node)) return {0};
    std::vector<size_t> images;
    for (size_t i : {0, 3}) {
      if (!is_number(node.input(i))) images.push_back(i);
    }
    return images;
  }

  double gain(const ir::Node& node) override {
    if (!is_reason(node)) return 0;
    if (editor_.target().is_device) return gain_on_device;
    const Tensor& w = *Editor::constant(node.input(3));
    const double products = likely_elements(*editor_.shape(node.output(0))) * static_cast<double>(w.elements()) /
                            static_cast<double>(w.dim(0));
    // Each output is also written, and channels first in 32 bits before.
    return products * (first_rate - last_rate) + likely_elements(*editor_.shape(node.output(0))) * 1000;
  }

  double conversion(const ir::Value& value) override {
    return 1000 * conversion_start + conversion_rate * likely_elements(*editor_.shape(&value));
  }

  ir::Node& add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images) override {
    std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
    const std::vector<size_t> places = image_inputs(node);
    for (size_t i = 0; i < places.size(); ++i) inputs[places[i]] = images[i];
    if (is_reason(node))
      return *patch.add_fused("QLinearConv", node, inputs, {{"channels_last", 1}}, microsoft)->producer();
    if (is_max_pool(node)) return *patch.add_fused("NhwcMaxPool", node, inputs, {}, microsoft)->producer();
    if (is_pool(node)) return patch.add_like(node, inputs, {{"channels_last", 1}});
    if (is(node, "", {"Concat", "Split"})) return patch.add_like(node, inputs, {{"axis", 3}});
    if (is(node, "", {"Resize"})) {
      const std::array<float, 4> s = *resize_scales(node);
      return patch.add_like(node, {inputs[0], nullptr, patch.constant(Tensor(Shape{4}, {s[0], s[2], s[3], s[1]}))});
    }
    return patch.add_like(node, inputs);
  }

 private:
  std::string why_not(const ir::Node& conv) {
    return editor_.target().is_device ? ops::why_not_nhwc_on_gpu(conv) : ops::why_not_nhwc(conv);
  }

  // Whether it is an image of codes.
  bool is_image(const ir::Value* value) {
    if (!value || Editor::constant(value)) return false;
    const ElementType type = element_type(editor_, value);
    if (type != ElementType::int8 && type != ElementType::uint8) return false;
    const SymbolicShape* shape = editor_.shape(value);
    return shape && shape->size() == 4 && (*shape)[1].is_known();
  }

  bool is_operand(const ir::Value* value) { return is_image(value) || is_number(value); }

  static bool is_axis_of_channels(const ir::Node& node) {
    const int64_t axis = node.int_attribute("axis", 0);
    return axis == 1 || axis == -3;
  }

  // Of a Resize that takes the nearest pixels.
  static std::optional<std::array<float, 4>> resize_scales(const ir::Node& node) {
    const Tensor* scales = Editor::constant(node.input(2));
    if (!scales || scales->elements() != 4 || scales->type() != ElementType::float32 || node.input(3) ||
        node.attribute("axes") || node.string_attribute("mode", "nearest") != "nearest" ||
        node.string_attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
      return std::nullopt;
    std::array<float, 4> result;
    std::ranges::copy(scales->data<float>(), result.begin());
    return result;
  }

  Editor& editor_;
};

// The value with channels last.
ir::Value* channels_last(Patch& patch, ir::Value& value) {
  const ir::Node* transpose = producer(&value, "Transpose");
  if (transpose && permutation_of(*transpose, 4) == to_first) return transpose->input(0);
  return patch.add("Transpose", {&value}, {{"perm", to_last}});
}

void use_channels_last(Editor& editor, ir::Graph& graph, ChannelsLastRules& rules) {
  for (ir::Node* node : LayoutChoice(editor, rules, graph).nodes()) {
    editor.rewrite(*node, [&](Patch& patch) {
      std::vector<ir::Value*> images;
      for (size_t i : rules.image_inputs(*node)) images.push_back(channels_last(patch, *node->input(i)));
      const ir::Node& added = rules.add(patch, *node, images);
      std::vector<ir::Value*> results;
      for (size_t i = 0; i < added.output_count(); ++i) {
        results.push_back(patch.add("Transpose", {added.output(i)}, {{"perm", to_first}}));
        const int64_t channels = (*editor.shape(node->output(i)))[1].value();
        patch.record_blocked(*node->output(i), *added.output(i), channels);
      }
      for (size_t i = 0; i < results.size(); ++i) patch.replace(*node->output(i), *results[i]);
    });
  }
}

}  // namespace

void use_channels_last(Editor& editor, ir::Graph& graph) {
  if (!editor.target().is_device && !prefers_channels_last()) return;
  CodesRules codes(editor);
  use_channels_last(editor, graph, codes);
  if (editor.target().is_device) use_channels_last(editor, graph, *channels_last_on_device(editor));
}

}  // namespace tenon::passes
