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

bool reads_channels_first(const ir::Node& node) { return node.int_attribute("reads_channels_first", 0) != 0; }

void infer_conv(Inference& i) {
  const ElementType type = i.element(7);
  const int64_t groups = i.node().int_attribute("group", 1);
  if (groups < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("group is {}; it must be at least 1", groups));
  if (!i.has_shape(0) || !i.has_shape(3)) return i.output(0, type, std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(3, i.rank(0));
  const bool is_last = i.node().int_attribute("channels_last", 0) != 0;
  const bool reads_last = is_last && !reads_channels_first(i.node());
  const SymbolicShape &x = i.shape(0), &w = i.shape(3);
  i.equal(reads_last ? x.back() : x[1], w[1] * groups, "the channels of x and the channels of w times group");
  SymbolicShape y =
      window_output(i, WindowAttributes(i.node()), SymbolicShape(w.begin() + 2, w.end()), reads_last ? 1 : 2);
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

// Codes plus those of input 9, if there are any.
Term added_codes(Decomposition& d, Term codes, ElementType type) {
  if (!d.has_input(9)) return codes;
  const Term own = d.add("DequantizeLinear", {codes, d.input(6), d.input(7)}, {}, float32);
  return quantized(d, own + dequantized(d, 9), 12, type);
}

// What the table of input 14 has for codes, if there is one. Negative indices count from the end, as the unsigned byte
// of a signed one does.
Term looked_up(Decomposition& d, Term codes, ElementType type) {
  return d.has_input(14) ? d.add("Gather", {d.input(14), cast(codes, int32)}, {}, type) : codes;
}

// The same with channels first. `inputs` are the node's, `name` an operator of ai.onnx.
void decompose_as(Decomposition& d, const char* name, ElementType type) {
  constexpr size_t most_inputs = 9;
  std::vector<Term> inputs;
  for (size_t k = 0; k < std::min(most_inputs, d.node().input_count()); ++k) inputs.push_back(d.input(k));
  const bool is_last = d.node().op_type == "NhwcMaxPool" || d.node().int_attribute("channels_last", 0) != 0;
  // That of the weights is the same, and they mostly are constants.
  const int rank = !is_last ? 0 : d.known_rank(0) < 0 && d.has_input(3) ? d.rank(3) : d.rank(0);
  if (d.element(0) == float32) inputs[0] = d.add("QuantizeLinear", {inputs[0], inputs[1], inputs[2]}, {}, d.element(2));
  if (is_last && !reads_channels_first(d.node())) inputs[0] = transpose(inputs[0], channels_from_end(rank));
  const Term y = add_with_attributes(d, name, inputs, type), codes = is_last ? transpose(y, channels_to_end(rank)) : y;
  d.output(0, looked_up(d, added_codes(d, codes, type), type));
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

namespace {

// Whether all that kernels prepare ahead is there: weights of two spatial axes, their scales and zero points.
std::string why_not_constant(const ir::Node& node) {
  for (size_t i : {1, 2, 3, 4, 5, 6, 7, 8}) {
    if (node.input(i) && !constant_of(node.input(i))) return "weights, scales or zero points are computed";
  }
  const Tensor &w = *constant_of(node.input(3)), &w_zero = *constant_of(node.input(5));
  if (w.rank() != 4 || w.elements() == 0) return "its weights do not have two spatial axes";
  for (size_t i : {1, 2, 6, 7}) {
    if (constant_of(node.input(i))->elements() != 1) return "it has more than one scale or zero point for its images";
  }
  const int64_t w_scales = constant_of(node.input(4))->elements();
  if (w_scales != 1 && w_scales != w.dim(0)) return "it has neither one scale nor one for each channel";
  if (w_zero.elements() != 1 && w_zero.elements() != w.dim(0))
    return "it has neither one zero point nor one for each channel";
  return "";
}

}  // namespace

std::string why_not_nhwc(const ir::Node& node) {
  if (std::string reason = why_not_constant(node); !reason.empty()) return reason;
  const Tensor &w = *constant_of(node.input(3)), &w_zero = *constant_of(node.input(5));
  const int64_t groups = node.int_attribute("group", 1);
  const bool is_depthwise = groups > 1 && groups == w.dim(0) && w.dim(1) == 1 && groups >= 4;
  if (groups != 1 && !is_depthwise) return "it has several groups of several channels";
  if (!fills_pixels(w.dim(0)) || !fills_pixels(w.dim(1) * groups)) return "its channels are no multiple of four";
  const bool is_plain = w.type() == ElementType::int8 &&
                        std::ranges::all_of(w_zero.data<int8_t>(), [](int8_t zero) { return zero == 0; });
  return is_plain || !centered_weights(w, w_zero).empty() ? "" : "its weights less their zero points exceed 8 bits";
}

std::string why_not_nhwc_on_gpu(const ir::Node& node) {
  if (std::string reason = why_not_constant(node); !reason.empty()) return reason;
  const Tensor &w = *constant_of(node.input(3)), &w_zero = *constant_of(node.input(5));
  const int64_t groups = node.int_attribute("group", 1);
  if (groups > 1 && groups == w.dim(0) && w.dim(1) == 1) return "";
  if (groups > 1 && w.dim(1) % 4 != 0) return "the channels of its groups are no multiple of four";
  return fits_bytes(w, &w_zero, 0) ? "" : "its weights less their zero points exceed 8 bits";
}

bool fits_bytes(const Tensor& w, const Tensor* zero_points, int axis) {
  if (!zero_points) return true;
  bool fits = true;
  dispatch<int8_t, uint8_t>(w.type(), [&]<typename T>() {
    const auto zeros = zero_points->data<T>();
    // The middle of all codes is no other than the zero of signed ones.
    constexpr int middle = std::is_signed_v<T> ? 0 : 128;
    if (std::ranges::all_of(zeros, [](T z) { return z == 0; }) ||
        std::ranges::all_of(zeros, [](T z) { return z == middle; }))
      return;
    const int64_t step = w.shape().elements(axis + 1, w.rank()), lines = w.dim(axis);
    int lowest = 0, highest = 0;
    for (int64_t i = 0; i < w.elements(); ++i) {
      const int zero = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(i / step % lines)];
      const int value = w.data<T>()[static_cast<size_t>(i)] - zero;
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
    fits = highest > 127 ? lowest >= 0 : lowest >= -128;
  });
  return fits;
}

std::string why_not_constant_matrix(const ir::Node& node, size_t b, size_t b_zero) {
  const Tensor *matrix = constant_of(node.input(b)), *zero = constant_of(node.input(b_zero));
  if (!matrix || matrix->rank() != 2 || matrix->elements() == 0) return "the matrix on the right is computed, or none";
  if (node.input(b_zero) && !zero) return "the zero points of the matrix on the right are computed";
  if (zero && zero->elements() != 1 && zero->elements() != matrix->dim(1))
    return "the matrix on the right has neither one zero point nor one for each column";
  return fits_bytes(*matrix, zero, 1) ? "" : "the matrix on the right exceeds 8 bits less its zero points";
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

namespace {

Operator& add_conv(OperatorList& list, std::string_view domain, const char* x_type) {
  constexpr TypeSet floats{float32};
  return add_window(list.add("QLinearConv", {1}, domain))
      .input("x", x_type)
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
}

}  // namespace

void define_nhwc(OperatorList& list) {
  add_conv(list, microsoft, "T1");
  // That of com.microsoft, to whose codes those of another image are added, as QLinearAdd does it, and which LookUp
  // then finds in a table. Each may be left out. x may be floats, which are quantized with its scale and zero point,
  // and may have its channels first all the same.
  add_conv(list, tenon_domain, "TX")
      .types("TX", bytes | TypeSet{float32})
      .attribute("reads_channels_first", AttributeKind::int_)
      .optional_input("addend", "T3")
      .optional_input("addend_scale", TypeSet{float32})
      .optional_input("addend_zero_point", "T3")
      .optional_input("sum_scale", TypeSet{float32})
      .optional_input("sum_zero_point", "T3")
      .optional_input("table", "T3");
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
