#include "ops/cost.h"
#include "ops/fused_activation.h"
#include "ops/fused_types.h"
#include "ops/known_attributes.h"
#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

int64_t groups_of(const Inference& i) {
  int64_t groups = i.node().int_attribute("group", 1);
  if (groups < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("group is {}; it must be at least 1", groups));
  return groups;
}

void check_divisible(const Inference& i, const Dim& channels, int64_t groups, std::string_view what) {
  if (channels.is_known() && channels.value() % groups != 0) {
    i.fail("{} {} cannot be divided into {} groups", channels.value(), what, groups);
  }
}

void infer_conv(Inference& i) {
  int64_t groups = groups_of(i);
  WindowAttributes window(i.node());
  i.require_rank(2, 1);
  if (!i.has_shape(0)) {
    if (!i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
    SymbolicShape result(static_cast<size_t>(i.rank(1)), Dim());
    for (Dim& dim : result) dim = Dim::unknown();
    if (result.size() > 1) result[1] = i.shape(1)[0];
    return i.output(0, i.element(0), std::move(result));
  }
  i.require_rank_at_least(0, 3);
  SymbolicShape kernel;
  Dim channels = Dim::unknown();
  const SymbolicShape& x = i.shape(0);
  if (i.has_shape(1)) {
    i.require_rank(1, i.rank(0));
    const SymbolicShape& w = i.shape(1);
    i.equal(x[1], w[1] * groups, "the channels of X and the channels of W times group");
    check_divisible(i, w[0], groups, "output channels");
    if (i.has_shape(2)) i.equal(w[0], i.shape(2)[0], "the output channels of W and the size of B");
    channels = w[0];
    kernel = SymbolicShape(w.begin() + 2, w.end());
  } else if (window.kernel.empty()) {
    kernel.resize(x.size() - 2);
    for (Dim& dim : kernel) dim = Dim::unknown();
  }
  SymbolicShape result = window_output(i, window, kernel);
  result.insert(result.begin(), channels);
  result.insert(result.begin(), x[0]);
  i.output(0, i.element(0), std::move(result));
}

void infer_fused_conv(Inference& i) {
  infer_conv(i);
  check_residual_and_activation(i, 3, i.output_type(0).shape);
}

void decompose_fused_conv(Decomposition& d) {
  ir::Node& conv = d.add_node("Conv", {d.node().input(0), d.node().input(1), d.node().input(2)});
  copy_known_attributes(d.node(), conv);
  output_with_residual_and_activation(d, {&d, d.add_output(conv), d.element(0)}, 3);
}

void infer_conv_transpose(Inference& i) {
  int64_t groups = groups_of(i);
  WindowAttributes window(i.node());
  std::vector<int64_t> wanted = i.node().ints_attribute("output_shape");
  i.require_rank(2, 1);
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(1, i.rank(0));
  const SymbolicShape &x = i.shape(0), &w = i.shape(1);
  int spatial = i.rank(0) - 2;
  if (spatial > most_spatial) {
    i.fail_with(
        ErrorCode::unsupported,
        fmt::format("convolutions over {} spatial axes are not supported; at most {} are", spatial, most_spatial));
  }
  window.check(spatial);
  i.equal(x[1], w[0], "the channels of X and of W");
  check_divisible(i, x[1], groups, "channels");
  Dim channels = w[1] * groups;
  if (i.has_shape(2)) i.equal(channels, i.shape(2)[0], "the output channels and the size of B");
  // Some exporters give the whole shape, batch and channels included.
  if (wanted.size() == x.size()) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != static_cast<size_t>(spatial)) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("output_shape has {} values for {} spatial axes", wanted.size(), spatial));
  }
  SymbolicShape result{x[0], channels};
  for (int d = 0; d < spatial; ++d) {
    auto at = static_cast<size_t>(d);
    WindowAxis axis = window.axis(d, spatial, w[at + 2]);
    i.equal(axis.kernel, w[at + 2], "kernel_shape and the weights' kernel");
    Dim size = wanted.empty() ? axis.transposed_output(x[at + 2]) : Dim(wanted[at]);
    if (size.is_known() && size.value() < 0) i.fail("the padding leaves {} elements on axis {}", size.value(), d + 2);
    result.push_back(std::move(size));
  }
  i.output(0, i.element(0), std::move(result));
}

Operator& convolution(Operator& op) {
  return op.input("X", "T")
      .input("W", "T")
      .optional_input("B", "T")
      .output("Y", "T")
      .attribute("auto_pad", AttributeKind::string)
      .attribute("dilations", AttributeKind::ints)
      .attribute("group", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints);
}

}  // namespace

void define_conv(OperatorList& list) {
  convolution(list.add("Conv", {1, 11, 22})).types("T", types::floats).infer(infer_conv).costs(multiply_adds::of_conv);
  with_residual_and_activation(convolution(list.add("FusedConv", {1}, tenon_domain)))
      .types("T", fused_types)
      .infer(infer_fused_conv)
      .decompose(decompose_fused_conv)
      .costs(multiply_adds::of_conv);
  convolution(list.add("ConvTranspose", {1, 11, 22}))
      .types("T", types::floats)
      .attribute("output_padding", AttributeKind::ints)
      .attribute("output_shape", AttributeKind::ints)
      .infer(infer_conv_transpose)
      .costs(multiply_adds::of_conv_transpose);
}

}  // namespace tenon::ops
