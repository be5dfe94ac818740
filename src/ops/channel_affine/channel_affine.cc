#include "ops/fused_activation.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// X is [N, C, …]; with `block`, [N, C / block rounded up, H, W, block].
void infer_channel_affine(Inference& i) {
  i.same_as_input(0);
  fused_activation(i.node());
  const int64_t block = i.node().int_attribute("block", 1);
  if (block < 1 || block > 1024)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("block is {}; it must be 1 to 1024", block));
  i.require_rank(1, 1);
  i.require_rank(2, 1);
  if (i.has_shape(1) && i.has_shape(2)) i.equal(i.shape(1)[0], i.shape(2)[0], "the sizes of scale and shift");
  if (!i.has_shape(0)) return;
  i.require_rank_at_least(0, 2);
  if (i.node().attribute("block")) {
    i.require_rank(0, 5);
    i.equal(i.shape(0)[4], block, "the last axis and block");
  }
  if (!i.has_shape(1)) return;
  i.equal(i.shape(0)[1], ceil_div(i.shape(1)[0], Dim(block)), "the blocks of X's channels and those of scale");
}

void decompose_channel_affine(Decomposition& d) {
  const bool is_blocked = d.node().attribute("block") != nullptr;
  const int64_t block = d.node().int_attribute("block", 1);
  const int rank = is_blocked ? 5 : d.rank(0);
  // The list as X's channels lie, its last block filled up with zeros.
  const auto per_channel = [&](size_t i) {
    Term list = d.input(i);
    if (const int64_t known = d.known_size(i, 0); known < 0 || known % block != 0) {
      Term past = d.add("Mod", {d.ints({0}) - size_of(list, 0), d.ints({block})});
      list = d.add("Pad", {list, concat({d.ints({0}), past})});
    }
    std::vector<int64_t> inner(static_cast<size_t>(rank - 2), 1);
    if (is_blocked) inner.back() = block;
    return reshape(list, concat({d.ints({1}), size_of(d.input(0), 1), d.ints(inner)}));
  };
  output_with_residual_and_activation(d, d.input(0) * per_channel(1) + per_channel(2), 3);
}

}  // namespace

void define_channel_affine(OperatorList& list) {
  list.add("ChannelAffine", {1}, tenon_domain)
      .input("X", "T")
      .input("scale", "T")
      .input("shift", "T")
      .output("Y", "T")
      .types("T", {ElementType::float32})
      .attribute("block", AttributeKind::int_)
      .attribute("activation", AttributeKind::string)
      .attribute("activation_params", AttributeKind::floats)
      .infer(infer_channel_affine)
      .decompose(decompose_channel_affine);
}

}  // namespace tenon::ops
