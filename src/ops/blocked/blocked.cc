#include "ops/blocked/blocked.h"

#include <numeric>

#include "base/checked.h"
#include "ops/cost.h"
#include "ops/decomposition.h"
#include "ops/fused_activation.h"
#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Images in blocked layout are [N, C / block rounded up, H, W, block]. What fills up the last block are numbers that
// mean nothing, but they are finite where the image's are.
int64_t block_of(const Inference& i) {
  const int64_t block = i.node().int_attribute("block", 0);
  if (block < 1 || block > 1024)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("block is {}; it must be 1 to 1024", block));
  return block;
}

// Whether `channels` channels fill this many blocks.
void check_blocks(const Inference& i, const Dim& channels, const Dim& blocks, int64_t block, std::string_view what) {
  i.equal(blocks, ceil_div(channels, Dim(block)), fmt::format("the blocks of X and of {}", what));
}

// Input 0, whose shape is known, is in blocked layout.
void require_blocked(const Inference& i, int64_t block) {
  i.require_rank(0, 5);
  i.equal(i.shape(0)[4], block, "the last axis and block");
}

void infer_to_blocked(Inference& i) {
  const int64_t block = block_of(i);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank(0, 4);
  const SymbolicShape& x = i.shape(0);
  i.output(0, i.element(0), SymbolicShape{x[0], ceil_div(x[1], Dim(block)), x[2], x[3], block});
}

void infer_from_blocked(Inference& i) {
  const int64_t block = block_of(i), channels = i.node().int_attribute("channels", 0);
  if (channels < 0)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("channels is {}; it must be at least 0", channels));
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  require_blocked(i, block);
  const SymbolicShape& x = i.shape(0);
  if (channels > 0) check_blocks(i, channels, x[1], block, "the attribute channels");
  i.output(0, i.element(0), SymbolicShape{x[0], channels > 0 ? Dim(channels) : x[1] * block, x[2], x[3]});
}

// What a BlockedConv gives, if that is known.
std::optional<SymbolicShape> convolved_shape(const Inference& i) {
  const int64_t block = block_of(i);
  const WindowAttributes window(i.node());
  window.check(2);
  i.require_rank(1, 4);
  i.require_rank(2, 1);
  fused_activation(i.node());
  const int64_t tile = i.node().int_attribute("winograd", 0);
  if (tile != 0 && tile != 2 && tile != 4)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("winograd is {}; it must be 0, 2 or 4", tile));
  if (!i.has_shape(0) || !i.has_shape(1)) return std::nullopt;
  const SymbolicShape &x = i.shape(0), &w = i.shape(1);
  const Dim channels = w[1] * i.node().int_attribute("group", 1);
  if (i.node().int_attribute("plain_input", 0) != 0) {
    i.require_rank(0, 4);
    i.equal(x[1], channels, "the channels of X and the channels of W times group");
  } else {
    require_blocked(i, block);
    check_blocks(i, channels, x[1], block, "the channels of W times group");
  }
  if (i.has_shape(2)) i.equal(w[0], i.shape(2)[0], "the output channels of W and the size of B");
  SymbolicShape result{x[0], ceil_div(w[0], Dim(block))};
  for (int d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d) + 2;
    const WindowAxis axis = window.axis(d, 2, w[at]);
    i.equal(axis.kernel, w[at], "kernel_shape and the weights' kernel");
    Dim size = axis.output(x[at]);
    if (size.is_known() && size.value() < 0) i.fail("the window is larger than axis {} with its padding", d + 2);
    result.push_back(std::move(size));
  }
  result.push_back(block);
  return result;
}

void infer_blocked_conv(Inference& i) {
  std::optional<SymbolicShape> result = convolved_shape(i);
  check_residual_and_activation(i, 3, result);
  i.output(0, i.element(0), std::move(result));
}

void infer_blocked_conv_max_pool(Inference& i) {
  const WindowAttributes windows(i.node(), pool_prefix);
  windows.check(pool_axes);
  std::optional<SymbolicShape> result = convolved_shape(i);
  for (int d = 0; result && d < pool_axes; ++d) {
    Dim& size = (*result)[static_cast<size_t>(d) + 2];
    size = windows.axis(d, pool_axes).output(size);
    if (size.is_known() && size.value() < 0) i.fail("the pool's window is larger than axis {} with its padding", d + 2);
  }
  i.output(0, i.element(0), std::move(result));
}

// One group; the padding is given, not the size of the output.
void infer_blocked_conv_transpose(Inference& i) {
  const int64_t block = block_of(i);
  const WindowAttributes window(i.node());
  window.check(2);
  i.require_rank(1, 4);
  i.require_rank(2, 1);
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  require_blocked(i, block);
  const SymbolicShape &x = i.shape(0), &w = i.shape(1);
  check_blocks(i, w[0], x[1], block, "the channels that W reads");
  if (i.has_shape(2)) i.equal(w[1], i.shape(2)[0], "the output channels of W and the size of B");
  SymbolicShape result{x[0], ceil_div(w[1], Dim(block))};
  for (int d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d) + 2;
    const WindowAxis axis = window.axis(d, 2, w[at]);
    i.equal(axis.kernel, w[at], "kernel_shape and the weights' kernel");
    Dim size = axis.transposed_output(x[at]);
    if (size.is_known() && size.value() < 0) i.fail("the padding leaves {} elements on axis {}", size.value(), at);
    result.push_back(std::move(size));
  }
  result.push_back(block);
  i.output(0, i.element(0), std::move(result));
}

// `channels` is how many there are, where that is known; -1 elsewhere.
Term to_blocked(Term x, int64_t block, int64_t channels) {
  Decomposition& d = *x.decomposition;
  if (channels < 0 || channels % block != 0) {
    Term past = d.add("Mod", {d.ints({0}) - size_of(x, 1), d.ints({block})});
    x = d.add("Pad", {x, concat({d.ints({0, 0, 0, 0, 0}), past, d.ints({0, 0})})});
  }
  Term sizes = concat(
      {size_of(x, 0), size_of(x, 1) / static_cast<double>(block), d.ints({block}), size_of(x, 2), size_of(x, 3)});
  return transpose(reshape(x, sizes), {0, 1, 3, 4, 2});
}

// The channels up to `count`, a list of one, whose blocks these must be; all if it holds nothing.
Term from_blocked(Term x, int64_t block, Term count) {
  const auto size = static_cast<double>(block);
  Term filled = count ? (count + (size - 1)) / size * size : size_of(x, 1) * size;
  Term plain = reshape(transpose(x, {0, 1, 4, 2, 3}), concat({size_of(x, 0), filled, size_of(x, 2), size_of(x, 3)}));
  return count ? slice(plain, x.decomposition->ints({0}), count, 1) : plain;
}

void decompose_to_blocked(Decomposition& d) {
  d.output(0, to_blocked(d.input(0), d.node().int_attribute("block", 0), d.known_size(0, 1)));
}

void decompose_from_blocked(Decomposition& d) {
  const int64_t block = d.node().int_attribute("block", 0), channels = d.node().int_attribute("channels", 0);
  d.output(0, from_blocked(d.input(0), block, channels > 0 ? d.ints({channels}) : Term()));
}

// The convolution or transposed convolution of the image as it is, whose weights have the channels that it reads on
// axis `axis`.
Term plain_conv(Decomposition& d, const char* op, int axis) {
  const int64_t block = d.node().int_attribute("block", 0);
  Term x = d.input(0);
  if (d.node().int_attribute("plain_input", 0) == 0) {
    const int64_t groups = axis == 1 ? d.node().int_attribute("group", 1) : 1, known = d.known_size(1, axis);
    const bool is_all = known >= 0 && known * groups % block == 0;
    x = from_blocked(x, block, is_all ? Term() : size_of(d.input(1), axis) * static_cast<double>(groups));
  }
  ir::Node& conv = d.add_node(op, {x.value, d.node().input(1), d.node().input(2)});
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : d.node().attributes) {
    if (attribute.name != "block" && attribute.name != "plain_input" && attribute.name != "winograd" &&
        !attribute.name.starts_with("activation") && !attribute.name.starts_with(pool_prefix))
      conv.attributes.push_back(ir::clone(attribute, none));
  }
  return {&d, d.add_output(conv), d.element(0)};
}

void decompose_blocked_conv(Decomposition& d) {
  const int64_t block = d.node().int_attribute("block", 0);
  output_with_residual_and_activation(d, to_blocked(plain_conv(d, "Conv", 1), block, d.known_size(1, 0)), 3);
}

void decompose_blocked_conv_max_pool(Decomposition& d) {
  const int64_t block = d.node().int_attribute("block", 0);
  Term y = activated(d, to_blocked(plain_conv(d, "Conv", 1), block, d.known_size(1, 0)));
  ir::Node& pool = d.add_node("MaxPool", {y.value});
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : d.node().attributes) {
    if (!attribute.name.starts_with(pool_prefix)) continue;
    pool.attributes.push_back(ir::clone(attribute, none));
    pool.attributes.back().name.erase(0, pool_prefix.size());
  }
  d.output(0, {&d, d.add_output(pool), d.element(0)});
}

void decompose_blocked_conv_transpose(Decomposition& d) {
  const int64_t block = d.node().int_attribute("block", 0);
  d.output(0, to_blocked(plain_conv(d, "ConvTranspose", 0), block, d.known_size(1, 1)));
}

// Each output is the maximum of some.
Dim multiply_adds_of_conv_max_pool(const ir::Node& node, std::span<const CostTensor> inputs) {
  Dim result = multiply_adds::of_conv(node, inputs);
  for (int64_t stride : node.ints_attribute("pool_strides")) result = result * stride;
  return result;
}

Operator& blocked_conv(OperatorList& list, const char* name) {
  return list.add(name, {1}, tenon_domain)
      .input("X", "T")
      .input("W", "T")
      .optional_input("B", "T")
      .output("Y", "T")
      .types("T", {ElementType::float32, ElementType::float16})
      .required_attribute("block", AttributeKind::int_)
      .attribute("plain_input", AttributeKind::int_)
      .attribute("auto_pad", AttributeKind::string)
      .attribute("dilations", AttributeKind::ints)
      .attribute("group", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .attribute("winograd", AttributeKind::int_);
}

Operator& conversion(OperatorList& list, const char* name) {
  return list.add(name, {1}, tenon_domain)
      .input("X", "T")
      .output("Y", "T")
      .types("T", {ElementType::float32, ElementType::float16})
      .required_attribute("block", AttributeKind::int_);
}

}  // namespace

std::optional<BlockedGroups> blocked_groups(int64_t groups, int64_t in, int64_t out, int64_t block) {
  if (groups < 1 || in < 1 || out < 1) return std::nullopt;
  const auto fills = [&](int64_t channels) { return block / std::gcd(block, channels); };
  const auto blocks = [&](int64_t channels) { return channels / block + (channels % block != 0 ? 1 : 0); };
  BlockedGroups made{};
  made.joined = std::min(groups, std::lcm(fills(in), fills(out)));
  made.count = groups / made.joined + (groups % made.joined != 0 ? 1 : 0);
  made.in = blocks(checked_mul(made.joined, in)) * block;
  made.out = blocks(checked_mul(made.joined, out)) * block;
  const bool is_all = checked_mul(made.count, made.in) == blocks(checked_mul(groups, in)) * block &&
                      checked_mul(made.count, made.out) == blocks(checked_mul(groups, out)) * block;
  return is_all ? std::optional(made) : std::nullopt;
}

void define_blocked(OperatorList& list) {
  conversion(list, "ToBlocked").infer(infer_to_blocked).decompose(decompose_to_blocked);
  conversion(list, "FromBlocked")
      .attribute("channels", AttributeKind::int_)
      .infer(infer_from_blocked)
      .decompose(decompose_from_blocked);
  Operator& conv = blocked_conv(list, "BlockedConv")
                       .infer(infer_blocked_conv)
                       .decompose(decompose_blocked_conv)
                       .costs(multiply_adds::of_conv);
  with_residual_and_activation(conv);
  Operator& pooled = blocked_conv(list, "BlockedConvMaxPool")
                         .attribute("pool_auto_pad", AttributeKind::string)
                         .attribute("pool_ceil_mode", AttributeKind::int_)
                         .attribute("pool_dilations", AttributeKind::ints)
                         .attribute("pool_kernel_shape", AttributeKind::ints)
                         .attribute("pool_pads", AttributeKind::ints)
                         .attribute("pool_strides", AttributeKind::ints)
                         .infer(infer_blocked_conv_max_pool)
                         .decompose(decompose_blocked_conv_max_pool)
                         .costs(multiply_adds_of_conv_max_pool);
  with_activation(pooled);
  list.add("BlockedConvTranspose", {1}, tenon_domain)
      .input("X", "T")
      .input("W", "T")
      .optional_input("B", "T")
      .output("Y", "T")
      .types("T", {ElementType::float32})
      .required_attribute("block", AttributeKind::int_)
      .attribute("kernel_shape", AttributeKind::ints)
      .attribute("output_padding", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_blocked_conv_transpose)
      .decompose(decompose_blocked_conv_transpose)
      .costs(multiply_adds::of_conv_transpose);
}

}  // namespace tenon::ops
