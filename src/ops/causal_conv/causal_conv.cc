#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_causal_conv(Inference& i) {
  const std::string activation = i.node().string_attribute("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("activation is '{}'; it may be 'none', 'silu' or 'swish'", activation));
  }
  for (size_t input : {0, 1, 3}) {
    if (i.has_input(input)) i.require_rank(input, 3);
  }
  if (i.has_input(2)) i.require_rank(2, 1);
  Dim batch = Dim::unknown(), channels = Dim::unknown(), length = Dim::unknown(), past = Dim::unknown();
  if (i.has_shape(0)) {
    batch = i.shape(0)[0];
    channels = i.shape(0)[1];
    length = i.shape(0)[2];
  }
  if (i.has_shape(1)) {
    channels = i.equal(channels, i.shape(1)[0], "the channels of input and weight");
    i.equal(i.shape(1)[1], 1, "axis 1 of the weight and the channels of a group");
    if (i.shape(1)[2].is(0)) i.fail("the kernel has size 0; it must be at least 1");
    past = i.shape(1)[2] - 1;
  }
  if (i.has_shape(2)) channels = i.equal(channels, i.shape(2)[0], "the channels and the size of bias");
  if (i.has_shape(3)) {
    batch = i.equal(batch, i.shape(3)[0], "the batches of input and past_state");
    channels = i.equal(channels, i.shape(3)[1], "the channels of input and past_state");
    past = i.equal(past, i.shape(3)[2], "the kernel's size less 1 and axis 2 of past_state");
  }
  i.output(0, i.element(0), SymbolicShape{batch, channels, length});
  i.output(1, i.element(0), SymbolicShape{batch, channels, past});
}

void decompose_causal_conv(Decomposition& d) {
  Term x = d.wide_input(0), weight = d.wide_input(1), bias = d.wide_input(2), y;
  Term length = size_of(x, 2), taps = size_of(weight, 2);
  Term past_shape = concat({size_of(x, 0), size_of(x, 1), taps - d.ints({1})});
  Term past = d.has_input(3) ? reshape(d.wide_input(3), past_shape) : expand(x.number(0), past_shape);
  Term extended = concat({past, x}, 2);
  if (const int64_t channels = std::max(d.known_size(0, 1), d.known_size(1, 0)); channels > 0) {
    y = d.add("Conv", {extended, weight, bias}, {{"group", channels}});
  } else {
    Term windows = gather(extended, unsqueeze(d.indices(length), {1}) + d.indices(taps), 2);
    y = reduce("ReduceSum", windows * weight, d.ints({-1}), /*keep=*/false);
    if (bias) y = y + unsqueeze(bias, {1});
  }
  if (d.node().string_attribute("activation", "none") != "none") y = y * sigmoid(y);
  d.output(0, y);
  d.output(1, slice(extended, length, d.ints({INT64_MAX}), 2));
}

}  // namespace

void define_causal_conv(OperatorList& list) {
  list.add("CausalConvWithState", {27})
      .input("input", "T")
      .input("weight", "T")
      .optional_input("bias", "T")
      .optional_input("past_state", "T")
      .output("output", "T")
      .output("present_state", "T")
      .types("T", types::floats - TypeSet{ElementType::float64})
      .attribute("activation", AttributeKind::string)
      .infer(infer_causal_conv)
      .decompose(decompose_causal_conv);
}

}  // namespace tenon::ops
