#include <memory>

#include "base/channel_block.h"
#include "kernels/conv_blocked/conv_blocked.h"
#include "kernels/transpose/transpose.h"
#include "kernels/winograd/winograd.h"
#include "ops/cpu_support/conv_shape.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::BlockedConvWeights;
using kernels::ConvShape;
using kernels::WinogradWeights;

// Moves the axis of a block's channels from before (`to_last`) to after the spatial axes, or back.
void move_block(KernelRun& run, bool to_last) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const Shape& blocked = to_last ? y.shape() : x.shape();
  const int64_t pixels = blocked[2] * blocked[3], block = blocked[4];
  const int64_t dims[] = {blocked[0] * blocked[1], to_last ? block : pixels, to_last ? pixels : block};
  constexpr int64_t order[] = {0, 2, 1};
  kernels::transpose(run.threads(), x.raw(), y.mutable_raw(), dims, order, sizeof(float));
}

class BlockedConv final : public Kernel {
 public:
  explicit BlockedConv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        block_(info.node().int_attribute("block", 0)),
        is_plain_(info.node().int_attribute("plain_input", 0) != 0),
        epilogue_(info.node()) {
    const Tensor* w = info.constant(1);
    if (!w || w->rank() != 4 || w->elements() == 0 || w->dim(0) % block_ != 0) return;
    if (groups_ != 1 && (w->dim(0) != groups_ || w->dim(1) != 1)) return;
    if (groups_ == 1 && !is_plain_ && w->dim(1) % block_ != 0) return;
    const auto tile = static_cast<int>(info.node().int_attribute("winograd", 0));
    if (tile > 0 && !is_plain_ && kernels::can_use_winograd(window_shape(*w))) {
      winograd_ = info.packed<WinogradWeights>({1}, fmt::format("block {} winograd {}", block_, tile), [&] {
        return WinogradWeights(info.threads(), window_shape(*w), tile, w->data<float>().data());
      });
      return;
    }
    packed_ = info.packed<BlockedConvWeights>({1}, fmt::format("block {} plain {}", block_, is_plain_),
                                              [&] { return pack(info.threads(), *w); });
  }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &w = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const Shape plain_y{y.dim(0), checked_mul(y.dim(1), block_), y.dim(2), y.dim(3)};
    const Shape plain_x = is_plain_ ? x.shape() : Shape{x.dim(0), checked_mul(x.dim(1), block_), x.dim(2), x.dim(3)};
    const ConvShape shape = conv_shape(window_, groups_, plain_x, w.shape(), plain_y);
    check_padded_image(run, shape);
    const auto floats = [&](size_t i) { return run.has_input(i) ? run.input(i).data<float>().data() : nullptr; };
    const kernels::ConvEpilogue epilogue{floats(2), epilogue_.lo, epilogue_.hi, floats(3), epilogue_.function};
    const float* from = x.data<float>().data();
    float* to = y.mutable_data<float>().data();
    if (winograd_)
      kernels::conv_winograd(run.threads(), shape, from, *winograd_, to, epilogue);
    else if (packed_)
      kernels::conv_blocked(run.threads(), shape, from, *packed_, to, epilogue);
    else
      kernels::conv_blocked(run.threads(), shape, from, pack(run.threads(), w), to, epilogue);
  }

 private:
  BlockedConvWeights pack(ThreadPool& pool, const Tensor& w) const {
    return BlockedConvWeights(pool, window_shape(w), is_plain_, w.data<float>().data());
  }

  // Without the sizes of images.
  ConvShape window_shape(const Tensor& w) const {
    ConvShape shape;
    shape.in_channels = checked_mul(w.dim(1), groups_);
    shape.out_channels = w.dim(0);
    shape.groups = groups_;
    for (int d : {1, 2}) {
      const WindowAxis axis = window_.axis(d - 1, 2, w.dim(d + 1));
      shape.kernel[d] = w.dim(d + 1);
      shape.stride[d] = axis.stride;
      shape.dilation[d] = axis.dilation;
    }
    return shape;
  }

  // The kernel pads a copy of the image. Strides and padding can make that far larger than input and output are; the
  // run's limit decides then.
  static void check_padded_image(const KernelRun& run, const ConvShape& s) {
    int64_t floats = s.in_channels;
    for (int d : {1, 2}) floats *= (s.output[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
    if (floats > 4 << 20 && floats > 4 * run.input(0).elements())
      run.scratch(floats * static_cast<int64_t>(sizeof(float)));
  }

  WindowAttributes window_;
  int64_t groups_, block_;
  bool is_plain_;
  FusedEpilogue epilogue_;
  std::shared_ptr<const BlockedConvWeights> packed_;
  std::shared_ptr<const WinogradWeights> winograd_;
};

std::string decline(const ir::Node& node) {
  const int64_t block = node.int_attribute("block", 0), wanted = channel_block(best_isa());
  if (block != wanted)
    return fmt::format("channels are in blocks of {}; this processor's kernels take {}", block, wanted);
  const int64_t groups = node.int_attribute("group", 1);
  const auto& w = node.input(1)->type.shape;
  if (groups == 1 || (w && w->size() == 4 && (*w)[0].is(groups) && (*w)[1].is(1))) return "";
  return fmt::format("group is {}; the kernel takes one, or each channel as its own", groups);
}

}  // namespace

void cpu_blocked(CpuKernels& list) {
  list.add_simple(
      "ToBlocked", [](KernelRun& run) { move_block(run, true); }, tenon_domain);
  list.add_simple(
      "FromBlocked", [](KernelRun& run) { move_block(run, false); }, tenon_domain);
  list.add(
      "BlockedConv", [](const NodeInfo& info) { return std::make_unique<BlockedConv>(info); }, decline, tenon_domain);
}

}  // namespace tenon::ops
