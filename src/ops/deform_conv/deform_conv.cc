#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_deform_conv(Inference& i) {
  int64_t groups = i.node().int_attribute("group", 1), offset_groups = i.node().int_attribute("offset_group", 1);
  if (groups < 1 || offset_groups < 1)
    i.fail_with(ErrorCode::invalid_attribute, "group and offset_group must be at least 1");
  WindowAttributes window(i.node());
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  if (i.rank(0) != 4)
    i.fail_with(ErrorCode::unsupported,
                fmt::format("only images with two spatial axes are supported; X has rank {}", i.rank(0)));
  i.require_rank(1, 4);
  i.require_rank(2, 4);
  i.require_rank(3, 1);
  i.require_rank(4, 4);
  const SymbolicShape &x = i.shape(0), &w = i.shape(1);
  i.equal(x[1], w[1] * groups, "the channels of X and the channels of W times group");
  if (w[0].is_known() && w[0].value() % groups != 0)
    i.fail("{} output channels cannot be divided into {} groups", w[0].value(), groups);
  if (x[1].is_known() && x[1].value() % offset_groups != 0)
    i.fail("{} channels cannot be divided into {} offset groups", x[1].value(), offset_groups);
  SymbolicShape result = window_output(i, window, SymbolicShape(w.begin() + 2, w.end()));
  Dim taps = w[2] * w[3] * offset_groups;
  for (size_t input : {2, 4}) {
    if (!i.has_shape(input)) continue;
    const char* name = input == 2 ? "offset" : "mask";
    i.equal(i.shape(input)[0], x[0], fmt::format("the batches of {} and X", name));
    i.equal(i.shape(input)[1], input == 2 ? taps * 2 : taps,
            fmt::format("the channels of {} and the taps of the kernel", name));
    i.equal(i.shape(input)[2], result[0], fmt::format("the heights of {} and the output", name));
    i.equal(i.shape(input)[3], result[1], fmt::format("the widths of {} and the output", name));
  }
  if (i.has_shape(3)) i.equal(i.shape(3)[0], w[0], "the size of B and the output channels");
  result.insert(result.begin(), w[0]);
  result.insert(result.begin(), x[0]);
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

void define_deform_conv(OperatorList& list) {
  list.add("DeformConv", {19, 22})
      .input("X", "T")
      .input("W", "T")
      .input("offset", "T")
      .optional_input("B", "T")
      .optional_input("mask", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("dilations", AttributeKind::ints)
      .attribute("group", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .attribute("offset_group", AttributeKind::int_)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_deform_conv);
}

}  // namespace tenon::ops
