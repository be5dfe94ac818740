#include "ops/cost.h"
#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

void infer_conv(Inference& i, size_t w_input, ElementType type) {
  int64_t groups = i.node().int_attribute("group", 1);
  if (groups < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("group is {}; it must be at least 1", groups));
  WindowAttributes window(i.node());
  if (!i.has_shape(0) || !i.has_shape(w_input)) return i.output(0, type, std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(w_input, i.rank(0));
  const SymbolicShape &x = i.shape(0), &w = i.shape(w_input);
  i.equal(x[1], w[1] * groups, "the channels of x and the channels of w times group");
  if (w[0].is_known() && w[0].value() % groups != 0)
    i.fail("{} output channels cannot be divided into {} groups", w[0].value(), groups);
  SymbolicShape result = window_output(i, window, SymbolicShape(w.begin() + 2, w.end()));
  result.insert(result.begin(), w[0]);
  result.insert(result.begin(), x[0]);
  i.output(0, type, std::move(result));
}

Operator& with_attributes(Operator& op) {
  return op.attribute("auto_pad", AttributeKind::string)
      .attribute("dilations", AttributeKind::ints)
      .attribute("group", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints);
}

}  // namespace

void define_conv_integer(OperatorList& list) {
  constexpr TypeSet bytes{int8, uint8}, floats{float32};
  with_attributes(list.add("ConvInteger", {10}))
      .input("x", "T1")
      .input("w", "T2")
      .optional_input("x_zero_point", "T1")
      .optional_input("w_zero_point", "T2")
      .output("y", TypeSet{int32})
      .types("T1", bytes)
      .types("T2", bytes)
      .infer([](Inference& i) { infer_conv(i, 1, int32); })
      .costs(multiply_adds::of_conv);
  with_attributes(list.add("QLinearConv", {10}))
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
      .infer([](Inference& i) {
        infer_conv(i, 3, i.element(7));
        i.require_rank(8, 1);
        if (i.has_shape(8) && i.has_shape(3))
          i.equal(i.shape(3)[0], i.shape(8)[0], "the output channels of w and the size of B");
      })
      .costs([](const ir::Node& node, std::span<const CostTensor> inputs) {
        return inputs.size() > 3 && inputs[3].shape ? multiply_adds::of_conv(node, inputs.subspan(2)) : Dim::unknown();
      });
}

}  // namespace tenon::ops
