#include "base/checked.h"
#include "ops/cost.h"
#include "ops/decomposition.h"
#include "ops/fused_activation.h"
#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Images in blocked layout are [N, C / block, H, W, block].
int64_t block_of(const Inference& i) {
  const int64_t block = i.node().int_attribute("block", 0);
  if (block < 1 || block > 1024)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("block is {}; it must be 1 to 1024", block));
  return block;
}

// `channels` in blocks.
Dim blocks_of(const Inference& i, const Dim& channels, int64_t block) {
  if (channels.is_known() && channels.value() % block != 0)
    i.fail("{} channels cannot be divided into blocks of {}", channels.value(), block);
  return exact_div(channels, block);
}

// The shape [N, C, H, W] of input 0, which is in blocked layout; its rank is known.
SymbolicShape plain_shape(const Inference& i, int64_t block) {
  i.require_rank(0, 5);
  const SymbolicShape& x = i.shape(0);
  i.equal(x[4], block, "the last axis and block");
  return {x[0], x[1] * block, x[2], x[3]};
}

void infer_to_blocked(Inference& i) {
  const int64_t block = block_of(i);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank(0, 4);
  const SymbolicShape& x = i.shape(0);
  i.output(0, i.element(0), SymbolicShape{x[0], blocks_of(i, x[1], block), x[2], x[3], block});
}

void infer_from_blocked(Inference& i) {
  const int64_t block = block_of(i);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.output(0, i.element(0), plain_shape(i, block));
}

void infer_blocked_conv(Inference& i) {
  const int64_t block = block_of(i);
  const WindowAttributes window(i.node());
  window.check(2);
  i.require_rank(1, 4);
  i.require_rank(2, 1);
  fused_activation(i.node());
  const int64_t tile = i.node().int_attribute("winograd", 0);
  if (tile != 0 && tile != 2 && tile != 4)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("winograd is {}; it must be 0, 2 or 4", tile));
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  const bool is_plain = i.node().int_attribute("plain_input", 0) != 0;
  if (is_plain) i.require_rank(0, 4);
  const SymbolicShape x = is_plain ? i.shape(0) : plain_shape(i, block), &w = i.shape(1);
  i.equal(x[1], w[1] * i.node().int_attribute("group", 1), "the channels of X and the channels of W times group");
  if (i.has_shape(2)) i.equal(w[0], i.shape(2)[0], "the output channels of W and the size of B");
  SymbolicShape result{x[0], blocks_of(i, w[0], block)};
  for (int d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d) + 2;
    const WindowAxis axis = window.axis(d, 2, w[at]);
    i.equal(axis.kernel, w[at], "kernel_shape and the weights' kernel");
    Dim size = axis.output(x[at]);
    if (size.is_known() && size.value() < 0) i.fail("the window is larger than axis {} with its padding", d + 2);
    result.push_back(std::move(size));
  }
  result.push_back(block);
  check_residual_and_activation(i, 3, result);
  i.output(0, i.element(0), std::move(result));
}

Term to_blocked(Term x, int64_t block) {
  Term sizes = concat({size_of(x, 0), size_of(x, 1) / static_cast<double>(block), x.decomposition->ints({block}),
                       size_of(x, 2), size_of(x, 3)});
  return transpose(reshape(x, sizes), {0, 1, 3, 4, 2});
}

Term from_blocked(Term x, int64_t block) {
  Term sizes = concat({size_of(x, 0), size_of(x, 1) * static_cast<double>(block), size_of(x, 2), size_of(x, 3)});
  return reshape(transpose(x, {0, 1, 4, 2, 3}), sizes);
}

void decompose_to_blocked(Decomposition& d) { d.output(0, to_blocked(d.input(0), d.node().int_attribute("block", 0))); }

void decompose_from_blocked(Decomposition& d) {
  d.output(0, from_blocked(d.input(0), d.node().int_attribute("block", 0)));
}

void decompose_blocked_conv(Decomposition& d) {
  const int64_t block = d.node().int_attribute("block", 0);
  const bool is_plain = d.node().int_attribute("plain_input", 0) != 0;
  const Term x = is_plain ? d.input(0) : from_blocked(d.input(0), block);
  ir::Node& conv = d.add_node("Conv", {x.value, d.node().input(1), d.node().input(2)});
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : d.node().attributes) {
    if (attribute.name != "block" && attribute.name != "plain_input" && attribute.name != "winograd" &&
        !attribute.name.starts_with("activation"))
      conv.attributes.push_back(ir::clone(attribute, none));
  }
  output_with_residual_and_activation(d, to_blocked({&d, d.add_output(conv), d.element(0)}, block), 3);
}

Operator& conversion(OperatorList& list, const char* name) {
  return list.add(name, {1}, tenon_domain)
      .input("X", "T")
      .output("Y", "T")
      .types("T", {ElementType::float32})
      .required_attribute("block", AttributeKind::int_);
}

}  // namespace

void define_blocked(OperatorList& list) {
  conversion(list, "ToBlocked").infer(infer_to_blocked).decompose(decompose_to_blocked);
  conversion(list, "FromBlocked").infer(infer_from_blocked).decompose(decompose_from_blocked);
  Operator& conv = list.add("BlockedConv", {1}, tenon_domain)
                       .input("X", "T")
                       .input("W", "T")
                       .optional_input("B", "T")
                       .output("Y", "T")
                       .types("T", {ElementType::float32})
                       .required_attribute("block", AttributeKind::int_)
                       .attribute("plain_input", AttributeKind::int_)
                       .attribute("auto_pad", AttributeKind::string)
                       .attribute("dilations", AttributeKind::ints)
                       .attribute("group", AttributeKind::int_)
                       .attribute("kernel_shape", AttributeKind::ints)
                       .attribute("pads", AttributeKind::ints)
                       .attribute("strides", AttributeKind::ints)
                       .attribute("winograd", AttributeKind::int_)
                       .infer(infer_blocked_conv)
                       .decompose(decompose_blocked_conv)
                       .costs(multiply_adds::of_conv);
  with_residual_and_activation(conv);
}

}  // namespace tenon::ops
