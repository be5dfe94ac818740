#include "ops/cost.h"
#include "ops/fused_activation.h"
#include "ops/fused_types.h"
#include "ops/known_attributes.h"
#include "ops/operator.h"
#include "ops/qlinear/qlinear.h"
#include "ops/window.h"

// Operators on images whose channels come last: [batch, sizes…, channels].
namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_conv(Inference& i) {
  const int64_t groups = i.node().int_attribute("group", 1);
  if (groups < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("group is {}; it must be at least 1", groups));
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(1, i.rank(0));
  const SymbolicShape &x = i.shape(0), &w = i.shape(1);
  i.equal(x.back(), w.back() * groups, "the channels of X and the channels of W times group");
  if (i.has_shape(2)) i.equal(w[0], i.shape(2)[0], "the output channels of W and the size of B");
  SymbolicShape y =
      window_output(i, WindowAttributes(i.node()), SymbolicShape(w.begin() + 1, w.end() - 1), /*first=*/1);
  y.push_back(w[0]);
  y.insert(y.begin(), x[0]);
  i.output(0, i.element(0), y);
  check_residual_and_activation(i, 3, y);
}

// With channels first, and back; of any rank, where only a run knows it.
Term channels_first(Decomposition& d, Term x) {
  if (d.known_rank(0) < 0) return d.add("Einsum", {x}, {{"equation", std::string("i...j->ij...")}});
  return transpose(x, channels_from_end(d.rank(0)));
}
Term channels_last(Decomposition& d, Term y) {
  if (d.known_rank(0) < 0) return d.add("Einsum", {y}, {{"equation", std::string("ij...->i...j")}});
  return transpose(y, channels_to_end(d.rank(0)));
}

void decompose_conv(Decomposition& d) {
  std::vector<ir::Value*> inputs{channels_first(d, d.input(0)).value, channels_first(d, d.input(1)).value};
  if (d.has_input(2)) inputs.push_back(d.node().input(2));
  ir::Node& conv = d.add_node("Conv", inputs);
  copy_known_attributes(d.node(), conv);
  const Term y{&d, d.add_output(conv), d.element(0)};
  output_with_residual_and_activation(d, channels_last(d, y), 3);
}

void infer_pool(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape y = window_output(i, WindowAttributes(i.node()), {}, /*first=*/1);
  y.push_back(i.shape(0).back());
  y.insert(y.begin(), i.shape(0)[0]);
  i.output(0, i.element(0), std::move(y));
}

void decompose_pool(Decomposition& d, const char* op) {
  d.output(0, channels_last(d, add_with_attributes(d, op, {channels_first(d, d.input(0))}, d.element(0))));
}

Operator& pool(OperatorList& list, const char* name) {
  return list.add(name, {1}, tenon_domain)
      .input("X", "T")
      .output("Y", "T")
      .types("T", fused_types)
      .attribute("auto_pad", AttributeKind::string)
      .attribute("ceil_mode", AttributeKind::int_)
      .attribute("dilations", AttributeKind::ints)
      .required_attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_pool);
}

}  // namespace

void define_channels_last(OperatorList& list) {
  // W is [output channels, kernel…, channels / group].
  with_residual_and_activation(list.add("ChannelsLastConv", {1}, tenon_domain)
                                   .input("X", "T")
                                   .input("W", "T")
                                   .optional_input("B", "T")
                                   .output("Y", "T")
                                   .types("T", fused_types)
                                   .attribute("auto_pad", AttributeKind::string)
                                   .attribute("dilations", AttributeKind::ints)
                                   .attribute("group", AttributeKind::int_)
                                   .attribute("kernel_shape", AttributeKind::ints)
                                   .attribute("pads", AttributeKind::ints)
                                   .attribute("strides", AttributeKind::ints))
      .infer(infer_conv)
      .decompose(decompose_conv)
      .costs(multiply_adds::of_conv);
  pool(list, "ChannelsLastMaxPool").decompose([](Decomposition& d) { decompose_pool(d, "MaxPool"); });
  pool(list, "ChannelsLastAveragePool")
      .attribute("count_include_pad", AttributeKind::int_)
      .decompose([](Decomposition& d) { decompose_pool(d, "AveragePool"); });
}

}  // namespace tenon::ops
