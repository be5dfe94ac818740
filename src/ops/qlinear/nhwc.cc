#include <algorithm>

#include "ops/cost.h"
#include "ops/dispatch.h"
#include "ops/known_attributes.h"
#include "ops/qlinear/qlinear.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

constexpr TypeSet bytes{int8, uint8};

const Tensor* constant_of(const ir::Value* value) {
  return value && value->is_fixed() ? &value->constant()->tensor : nullptr;
}

// Channels that fill the kernels' groups of four bytes, or are so few that pixels are copied.
bool fills_pixels(int64_t channels) { return channels < 4 || channels % 4 == 0; }

Operator& add_window(Operator& op) {
  return op.attribute("auto_pad", AttributeKind::string)
      .attribute("dilations", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints);
}

void infer_conv(Inference& i) {
  const ElementType type = i.element(7);
  const int64_t groups = i.node().int_attribute("group", 1);
  if (groups < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("group is {}; it must be at least 1", groups));
  if (!i.has_shape(0) || !i.has_shape(3)) return i.output(0, type, std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(3, i.rank(0));
  const bool is_last = i.node().int_attribute("channels_last", 0) != 0;
  const SymbolicShape &x = i.shape(0), &w = i.shape(3);
  i.equal(is_last ? x.back() : x[1], w[1] * groups, "the channels of x and the channels of w times group");
  SymbolicShape y =
      window_output(i, WindowAttributes(i.node()), SymbolicShape(w.begin() + 2, w.end()), is_last ? 1 : 2);
  y.insert(is_last ? y.end() : y.begin(), w[0]);
  y.insert(y.begin(), x[0]);
  i.output(0, type, std::move(y));
}

void infer_max_pool(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape y = window_output(i, WindowAttributes(i.node()), {}, 1);
  y.push_back(i.shape(0).back());
  y.insert(y.begin(), i.shape(0)[0]);
  i.output(0, i.element(0), std::move(y));
}

// The same with channels first. `inputs` are the node's, `name` an operator of ai.onnx.
void decompose_as(Decomposition& d, const char* name, ElementType type) {
  std::vector<Term> inputs;
  for (size_t k = 0; k < d.node().input_count(); ++k) inputs.push_back(d.input(k));
  const bool is_last = d.node().op_type == "NhwcMaxPool" || d.node().int_attribute("channels_last", 0) != 0;
  if (is_last) inputs[0] = transpose(inputs[0], channels_from_end(d.rank(0)));
  const Term y = add_with_attributes(d, name, inputs, type);
  d.output(0, is_last ? transpose(y, channels_to_end(d.rank(0))) : y);
}

}  // namespace

std::vector<int8_t> centered_weights(const Tensor& w, const Tensor& zero_point) {
  std::vector<int8_t> result(static_cast<size_t>(w.elements()));
  bool fits = true;
  dispatch<int8_t, uint8_t>(w.type(), [&]<typename T>() {
    const auto from = w.data<T>(), zeros = zero_point.data<T>();
    const size_t step = from.size() / zeros.size();
    for (size_t channel = 0; channel < zeros.size(); ++channel) {
      const int zero = zeros[channel];
      for (size_t i = channel * step; i < (channel + 1) * step; ++i) {
        const int value = from[i] - zero;
        fits = fits && value >= -128 && value <= 127;
        result[i] = static_cast<int8_t>(value);
      }
    }
  });
  return fits ? result : std::vector<int8_t>();
}

std::string why_not_nhwc(const ir::Node& node) {
  for (size_t i : {1, 2, 3, 4, 5, 6, 7, 8}) {
    if (node.input(i) && !constant_of(node.input(i))) return "weights, scales or zero points are computed";
  }
  const Tensor &w = *constant_of(node.input(3)), &w_zero = *constant_of(node.input(5));
  const int64_t groups = node.int_attribute("group", 1);
  if (w.rank() != 4 || w.elements() == 0) return "its weights do not have two spatial axes";
  for (size_t i : {1, 2, 6, 7}) {
    if (constant_of(node.input(i))->elements() != 1) return "it has more than one scale or zero point for its images";
  }
  const int64_t w_scales = constant_of(node.input(4))->elements();
  if (w_scales != 1 && w_scales != w.dim(0)) return "it has neither one scale nor one for each channel";
  if (w_zero.elements() != 1 && w_zero.elements() != w.dim(0))
    return "it has neither one zero point nor one for each channel";
  const bool is_depthwise = groups > 1 && groups == w.dim(0) && w.dim(1) == 1 && groups >= 4;
  if (groups != 1 && !is_depthwise) return "it has several groups of several channels";
  if (!fills_pixels(w.dim(0)) || !fills_pixels(w.dim(1) * groups)) return "its channels are no multiple of four";
  const bool is_plain = w.type() == ElementType::int8 &&
                        std::ranges::all_of(w_zero.data<int8_t>(), [](int8_t zero) { return zero == 0; });
  return is_plain || !centered_weights(w, w_zero).empty() ? "" : "its weights less their zero points exceed 8 bits";
}

std::vector<int64_t> channels_to_end(int rank) {
  std::vector<int64_t> order = {0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}
std::vector<int64_t> channels_from_end(int rank) {
  std::vector<int64_t> order = {0, rank - 1};
  for (int axis = 1; axis + 1 < rank; ++axis) order.push_back(axis);
  return order;
}

Term add_with_attributes(Decomposition& d, const char* op, const std::vector<Term>& inputs, ElementType type) {
  std::vector<ir::Value*> values;
  for (const Term& input : inputs) values.push_back(input.value);
  while (!values.empty() && !values.back()) values.pop_back();
  ir::Node& node = d.add_node(op, values);
  copy_known_attributes(d.node(), node);
  return {inputs[0].decomposition, d.add_output(node), type};
}

void define_nhwc(OperatorList& list) {
  constexpr TypeSet floats{float32};
  add_window(list.add("QLinearConv", {1}, microsoft))
      .input("x", "T1")
      .input("x_scale", floats)
      .input("x_zero_point", "T1")
      .input("w", "T2")
      .input("w_scale", floats)
      .input("w_zero_point", "T2")
      .input("y_scale", floats)
      .input("y_zero_point", "T3")
      .optional_input("B", TypeSet{int32})
      .output("y", "T3")
      .types("T1", bytes)
      .types("T2", bytes)
      .types("T3", bytes)
      .attribute("channels_last", AttributeKind::int_)
      .attribute("group", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .infer(infer_conv)
      .decompose([](Decomposition& d) { decompose_as(d, "QLinearConv", d.element(7)); })
      .costs([](const ir::Node& node, std::span<const CostTensor> inputs) {
        return inputs.size() > 3 && inputs[3].shape ? multiply_adds::of_conv(node, inputs.subspan(2)) : Dim::unknown();
      });
  add_window(list.add("NhwcMaxPool", {1}, microsoft))
      .input("x", "T")
      .output("y", "T")
      .types("T", bytes)
      .attribute("ceil_mode", AttributeKind::int_)
      .required_attribute("kernel_shape", AttributeKind::ints)
      .infer(infer_max_pool)
      .decompose([](Decomposition& d) { decompose_as(d, "MaxPool", d.element(0)); });
  // y = table[x], of 256 entries, in the order of unsigned bytes.
  list.add("LookUp", {1}, tenon_domain)
      .input("x", "T1")
      .input("table", "T2")
      .output("y", "T2")
      .types("T1", bytes)
      .types("T2", bytes)
      .infer([](Inference& i) { i.output(0, i.element(1), i.type(0).shape); })
      .decompose([](Decomposition& d) {
        // Negative indices count from the end, as the unsigned byte of a signed one does.
        d.output(0, d.add("Gather", {d.input(1), cast(d.input(0), int32)}, {}, d.element(1)));
      });
}

}  // namespace tenon::ops
