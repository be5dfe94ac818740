#include <algorithm>
#include <memory>
#include <vector>

#include "base/channel_block.h"
#include "kernels/conv_blocked/conv_blocked.h"
#include "kernels/conv_transpose_blocked/conv_transpose_blocked.h"
#include "kernels/transpose/transpose.h"
#include "kernels/winograd/winograd.h"
#include "ops/blocked/blocked.h"
#include "ops/cpu_support/conv_shape.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "ops/cpu_support/pool_shape.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::BlockedConvTransposeWeights;
using kernels::ConvShape;
using kernels::WinogradWeights;

// Images that are plain, [N, channels, H, W], and blocked.
struct BlockedImages {
  int64_t count, channels, blocks, pixels, block;

  BlockedImages(const Shape& plain, const Shape& blocked)
      : count(plain[0]), channels(plain[1]), blocks(blocked[1]), pixels(plain[2] * plain[3]), block(blocked[4]) {}

  // Channels of a last block that they do not fill.
  int64_t rest() const { return channels % block; }
  int64_t full_blocks() const { return channels / block; }
};

// A number of half precision has no value here: it is moved, or it is zero.
template <class Number>
void to_blocked_of(KernelRun& run) {
  const BlockedImages s(run.input(0).shape(), run.output(0).shape());
  const auto* x = static_cast<const Number*>(run.input(0).raw());
  auto* y = static_cast<Number*>(run.output(0).mutable_raw());
  constexpr int64_t order[] = {0, 2, 1};
  if (s.rest() == 0) {
    const int64_t dims[] = {s.count * s.blocks, s.block, s.pixels};
    return kernels::transpose(run.threads(), x, y, dims, order, sizeof(Number));
  }
  for (int64_t n = 0; n < s.count; ++n, x += s.channels * s.pixels, y += s.blocks * s.pixels * s.block) {
    const int64_t dims[] = {s.full_blocks(), s.block, s.pixels}, full = s.full_blocks() * s.block * s.pixels;
    if (full > 0) kernels::transpose(run.threads(), x, y, dims, order, sizeof(Number));
    for (int64_t pixel = 0; pixel < s.pixels; ++pixel) {
      Number* to = y + full + pixel * s.block;
      for (int64_t c = 0; c < s.block; ++c) to[c] = c < s.rest() ? x[full + c * s.pixels + pixel] : Number{};
    }
  }
}

template <class Number>
void from_blocked_of(KernelRun& run) {
  const BlockedImages s(run.output(0).shape(), run.input(0).shape());
  const auto* x = static_cast<const Number*>(run.input(0).raw());
  auto* y = static_cast<Number*>(run.output(0).mutable_raw());
  constexpr int64_t order[] = {0, 2, 1};
  if (s.rest() == 0) {
    const int64_t dims[] = {s.count * s.blocks, s.pixels, s.block};
    return kernels::transpose(run.threads(), x, y, dims, order, sizeof(Number));
  }
  for (int64_t n = 0; n < s.count; ++n, y += s.channels * s.pixels, x += s.blocks * s.pixels * s.block) {
    const int64_t dims[] = {s.full_blocks(), s.pixels, s.block}, full = s.full_blocks() * s.block * s.pixels;
    if (full > 0) kernels::transpose(run.threads(), x, y, dims, order, sizeof(Number));
    for (int64_t c = 0; c < s.rest(); ++c) {
      for (int64_t pixel = 0; pixel < s.pixels; ++pixel) y[full + c * s.pixels + pixel] = x[full + pixel * s.block + c];
    }
  }
}

// Calls function.template operator()<Number>(), unless there is nothing to do.
template <class Function>
void for_numbers_of(const Tensor& y, Function function) {
  if (y.elements() == 0) return;
  if (y.type() == ElementType::float16) return function.template operator()<uint16_t>();
  function.template operator()<float>();
}

void to_blocked(KernelRun& run) {
  for_numbers_of(run.output(0), [&]<class Number>() { to_blocked_of<Number>(run); });
}
void from_blocked(KernelRun& run) {
  for_numbers_of(run.output(0), [&]<class Number>() { from_blocked_of<Number>(run); });
}

int64_t whole_blocks(int64_t channels, int64_t block) {
  return checked_mul(channels / block + (channels % block != 0 ? 1 : 0), block);
}

// Weights [rows, columns, H, W] with zeros to as many rows and columns as whole blocks hold. Of `group_rows` rows each
// `joined` groups make one, and have columns of their own in it.
template <class Number>
class BlockedWeights {
 public:
  // Nothing is read unless `storage` fills what it gives.
  BlockedWeights(const Tensor& w, int64_t rows, int64_t columns, const PackedStorage& storage, int64_t group_rows = 0,
                 int64_t joined = 1)
      : data_(static_cast<const Number*>(w.raw())) {
    if ((rows == w.dim(0) && columns == w.dim(1)) || !storage.fills()) return;
    const int64_t size = w.dim(2) * w.dim(3), row = w.dim(1) * size;
    filled_.assign(static_cast<size_t>(checked_mul(checked_mul(rows, columns), size)), Number{});
    for (int64_t i = 0; i < w.dim(0); ++i) {
      const int64_t place = joined > 1 ? i / group_rows % joined : 0;
      std::copy_n(data_ + i * row, row, filled_.data() + i * columns * size + place * row);
    }
    data_ = filled_.data();
  }
  BlockedWeights(const BlockedWeights&) = delete;
  BlockedWeights& operator=(const BlockedWeights&) = delete;
  const Number* data() const { return data_; }

 private:
  const Number* data_;
  std::vector<Number> filled_;
};

// A bias with zeros for the channels that fill up the last block; null when there is none.
template <class Number>
class BlockedBias {
 public:
  BlockedBias(const KernelRun& run, size_t input, int64_t channels) {
    if (!run.has_input(input)) return;
    data_ = static_cast<const Number*>(run.input(input).raw());
    const int64_t own = run.input(input).elements();
    if (own == channels) return;
    filled_.assign(static_cast<size_t>(channels), Number{});
    std::copy_n(data_, own, filled_.data());
    data_ = filled_.data();
  }
  BlockedBias(const BlockedBias&) = delete;
  BlockedBias& operator=(const BlockedBias&) = delete;
  const Number* data() const { return data_; }

 private:
  const Number* data_ = nullptr;
  std::vector<Number> filled_;
};

// BlockedConv, and of floats BlockedConvMaxPool. Number is float, or uint16_t for half precision.
template <class Number>
class BlockedConv final : public Kernel {
 public:
  explicit BlockedConv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        block_(info.node().int_attribute("block", 0)),
        is_plain_(info.node().int_attribute("plain_input", 0) != 0),
        epilogue_(info.node()) {
    if (info.node().op_type == "BlockedConvMaxPool") pool_.emplace(info.node(), pool_prefix);
    const Tensor* w = info.constant(1);
    if (!w || w->rank() != 4 || w->elements() == 0) return;
    if constexpr (is_float) {
      const auto tile = static_cast<int>(info.node().int_attribute("winograd", 0));
      if (tile > 0 && !is_plain_ && kernels::can_use_winograd(window_shape(w->shape())))
        winograd_ = info.packed<WinogradWeights>(
            {1}, fmt::format("block {} winograd {} groups {}", block_, tile, groups_), [&](PackedStorage& storage) {
              return WinogradWeights(info.threads(), window_shape(w->shape()), tile,
                                     blocked_weights(*w, storage).data(), storage);
            });
    }
    if (winograd_) return;
    packed_ = info.packed<Weights>({1}, fmt::format("block {} plain {} groups {}", block_, is_plain_, groups_),
                                   [&](PackedStorage& storage) { return pack(info.threads(), *w, storage); });
  }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &w = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const Shape blocked_y = pool_ ? convolved_shape(x, w, y) : y.shape();
    const Shape plain_y{blocked_y[0], checked_mul(blocked_y[1], block_), blocked_y[2], blocked_y[3]};
    const Shape plain_x = is_plain_ ? x.shape() : Shape{x.dim(0), checked_mul(x.dim(1), block_), x.dim(2), x.dim(3)};
    const ConvShape shape = conv_shape(window_, window_shape(w.shape()).groups, plain_x, w.shape(), plain_y);
    check_padded_image(run, shape);
    const BlockedBias<Number> bias(run, 2, plain_y[1]);
    const auto* residual = run.has_input(3) ? static_cast<const Number*>(run.input(3).raw()) : nullptr;
    const kernels::EpilogueOf<Number> epilogue{bias.data(), epilogue_.lo, epilogue_.hi, residual, activation()};
    const auto* from = static_cast<const Number*>(x.raw());
    auto* to = static_cast<Number*>(y.mutable_raw());
    if constexpr (is_float) {
      if (pool_) return pooled(run, shape, blocked_y, epilogue);
      if (winograd_) return kernels::conv_winograd(run.threads(), shape, from, *winograd_, to, epilogue);
    }
    if (packed_)
      kernels::conv_blocked(run.threads(), shape, from, *packed_, to, epilogue);
    else
      kernels::conv_blocked(run.threads(), shape, from, pack(run.threads(), w), to, epilogue);
  }

 private:
  using Weights = kernels::ConvWeightsInBlocks<Number>;
  static constexpr bool is_float = std::is_same_v<Number, float>;

  // What the pool is of.
  Shape convolved_shape(const Tensor& x, const Tensor& w, const Tensor& y) const {
    Shape result{y.dim(0), y.dim(1)};
    for (int d : {0, 1}) result.push_back(window_.axis(d, 2, w.dim(d + 2)).output(x.dim(d + 2)).value());
    result.push_back(block_);
    return result;
  }

  void pooled(KernelRun& run, const ConvShape& shape, const Shape& convolved, const kernels::ConvEpilogue& e) const {
    const kernels::PoolShape windows = pool_shape(*pool_, convolved, run.output(0).shape());
    ThreadPool& threads = run.threads();
    const float* x = run.input(0).data<float>().data();
    float* y = run.output(0).mutable_data<float>().data();
    const bool fits =
        winograd_ ? kernels::can_pool_winograd(shape, windows) : kernels::pays_to_pool(threads, shape, windows);
    const std::shared_ptr<void> whole =
        fits ? nullptr : run.scratch(checked_mul(convolved.elements(), int64_t{sizeof(float)}));
    auto* convolved_to = static_cast<float*>(whole.get());
    if (winograd_) {
      if (fits) return kernels::conv_winograd_max_pool(threads, shape, windows, x, *winograd_, y, e);
      kernels::conv_winograd(threads, shape, x, *winograd_, convolved_to, e);
    } else {
      const auto convolve = [&](const Weights& weights) {
        if (fits) return kernels::conv_blocked_max_pool(threads, shape, windows, x, weights, y, e);
        kernels::conv_blocked(threads, shape, x, weights, convolved_to, e);
      };
      packed_ ? convolve(*packed_) : convolve(pack(threads, run.input(1)));
    }
    if (!fits) kernels::max_pool(threads, windows, convolved_to, y);
  }

  auto activation() const {
    if constexpr (is_float)
      return epilogue_.function;
    else
      return epilogue_.half_function;
  }

  Weights pack(ThreadPool& pool, const Tensor& w, PackedStorage& storage = fresh_storage()) const {
    return Weights(pool, window_shape(w.shape()), is_plain_, blocked_weights(w, storage).data(), storage);
  }

  BlockedWeights<Number> blocked_weights(const Tensor& w, const PackedStorage& storage) const {
    const ConvShape shape = window_shape(w.shape());
    const int64_t joined = groups_ == 1 || is_depthwise(w.shape()) ? 1 : groups_of(w.shape()).joined;
    return BlockedWeights<Number>(w, shape.out_channels, shape.in_channels / shape.groups, storage, w.dim(0) / groups_,
                                  joined);
  }

  bool is_depthwise(const Shape& w) const { return groups_ > 1 && w[0] == groups_ && w[1] == 1; }
  BlockedGroups groups_of(const Shape& w) const { return *blocked_groups(groups_, w[1], w[0] / groups_, block_); }

  // With channels of whole blocks, and without the sizes of images.
  ConvShape window_shape(const Shape& w) const {
    ConvShape shape;
    shape.out_channels = whole_blocks(w[0], block_);
    if (is_plain_) {
      shape.in_channels = w[1];
    } else if (groups_ == 1) {
      shape.in_channels = whole_blocks(w[1], block_);
    } else if (is_depthwise(w)) {
      shape.in_channels = shape.groups = shape.out_channels;
    } else {
      const BlockedGroups groups = groups_of(w);
      shape.groups = groups.count;
      shape.in_channels = groups.count * groups.in;
    }
    for (int d : {1, 2}) {
      const WindowAxis axis = window_.axis(d - 1, 2, w[d + 1]);
      shape.kernel[d] = w[d + 1];
      shape.stride[d] = axis.stride;
      shape.dilation[d] = axis.dilation;
    }
    return shape;
  }

  // The kernel pads a copy of the image. Strides and padding can make that far larger than input and output are; the
  // run's limit decides then.
  static void check_padded_image(const KernelRun& run, const ConvShape& s) {
    int64_t numbers = s.in_channels;
    for (int d : {1, 2}) numbers *= (s.output[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
    if (numbers > 4 << 20 && numbers > 4 * run.input(0).elements())
      run.scratch(numbers * static_cast<int64_t>(sizeof(Number)));
  }

  WindowAttributes window_;
  int64_t groups_, block_;
  bool is_plain_;
  std::optional<WindowAttributes> pool_;
  FusedEpilogue epilogue_;
  std::shared_ptr<const Weights> packed_;
  std::shared_ptr<const WinogradWeights> winograd_;
};

class BlockedConvTranspose final : public Kernel {
 public:
  explicit BlockedConvTranspose(const NodeInfo& info)
      : window_(info.node()), block_(info.node().int_attribute("block", 0)) {
    const Tensor* w = info.constant(1);
    if (!w || w->rank() != 4 || w->elements() == 0) return;
    std::string layout = fmt::format("block {} strides", block_);
    for (int d : {0, 1}) {
      const WindowAxis axis = window_.axis(d, 2, w->dim(d + 2));
      layout += fmt::format(" {} pad {}", axis.stride, axis.pad_begin);
    }
    packed_ = info.packed<BlockedConvTransposeWeights>(
        {1}, layout, [&](PackedStorage& storage) { return pack(info.threads(), *w, storage); });
  }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &w = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    ConvShape shape = window_shape(w.shape());
    shape.batch = x.dim(0);
    for (int d : {1, 2}) shape.input[d] = x.dim(d + 1), shape.output[d] = y.dim(d + 1);
    const BlockedBias<float> bias(run, 2, shape.out_channels);
    const float* from = x.data<float>().data();
    float* to = y.mutable_data<float>().data();
    if (packed_)
      kernels::conv_transpose_blocked(run.threads(), shape, from, *packed_, to, bias.data());
    else
      kernels::conv_transpose_blocked(run.threads(), shape, from, pack(run.threads(), w), to, bias.data());
  }

 private:
  BlockedConvTransposeWeights pack(ThreadPool& pool, const Tensor& w, PackedStorage& storage = fresh_storage()) const {
    const ConvShape shape = window_shape(w.shape());
    const BlockedWeights<float> weights(w, shape.in_channels, shape.out_channels, storage);
    return BlockedConvTransposeWeights(pool, shape, weights.data(), storage);
  }

  ConvShape window_shape(const Shape& w) const {
    ConvShape shape;
    shape.in_channels = whole_blocks(w[0], block_);
    shape.out_channels = whole_blocks(w[1], block_);
    for (int d : {1, 2}) {
      const WindowAxis axis = window_.axis(d - 1, 2, w[d + 1]);
      shape.kernel[d] = w[d + 1];
      shape.stride[d] = axis.stride;
      shape.pad[d] = axis.pad_begin;
    }
    return shape;
  }

  WindowAttributes window_;
  int64_t block_;
  std::shared_ptr<const BlockedConvTransposeWeights> packed_;
};

std::string decline_block(const ir::Node& node) {
  const bool is_half = node.input(0) && node.input(0)->type.element == ElementType::float16;
  const int64_t block = node.int_attribute("block", 0);
  const int64_t wanted = is_half ? half_channel_block() : channel_block(best_isa());
  if (block == wanted) return "";
  if (wanted == 0) return "this processor has no arithmetic of half precision";
  return fmt::format("channels are in blocks of {}; this processor's kernels take {}", block, wanted);
}

std::string decline_conv(const ir::Node& node) {
  if (std::string reason = decline_block(node); !reason.empty()) return reason;
  const int64_t groups = node.int_attribute("group", 1);
  const auto& w = node.input(1)->type.shape;
  if (groups == 1 || (w && w->size() == 4 && (*w)[0].is(groups) && (*w)[1].is(1))) return "";
  const bool is_float = node.input(0) && node.input(0)->type.element == ElementType::float32;
  const bool is_known = w && w->size() == 4 && (*w)[0].is_known() && (*w)[1].is_known();
  if (is_float && is_known && groups > 0 && node.int_attribute("plain_input", 0) == 0 &&
      blocked_groups(groups, (*w)[1].value(), (*w)[0].value() / groups, node.int_attribute("block", 0)))
    return "";
  return fmt::format("group is {}; the kernel takes one, each channel as its own, or floats whose groups fill blocks",
                     groups);
}

std::string decline_conv_max_pool(const ir::Node& node) {
  if (node.input(0) && node.input(0)->type.element != ElementType::float32) return "the kernel takes float";
  if (std::string reason = decline_block(node); !reason.empty()) return reason;
  if (node.int_attribute("group", 1) != 1) return "the kernel takes one group";
  const auto is_one = [](int64_t i) { return i == 1; };
  if (!std::ranges::all_of(node.ints_attribute("dilations"), is_one)) return "the kernel takes no dilation";
  const WindowAxis inner = WindowAttributes(node, pool_prefix).axis(2, pool_axes);
  if (!inner.kernel.is(1) || inner.stride != 1 || inner.pad_begin != 0 || inner.pad_end != 0)
    return "the kernel takes pools over height and width";
  return "";
}

// Parts of the kernel are weights each: more than the kernel holds where the padding is larger.
std::string decline_conv_transpose(const ir::Node& node) {
  if (std::string reason = decline_block(node); !reason.empty()) return reason;
  const WindowAttributes window(node);
  const auto& w = node.input(1)->type.shape;
  for (int d : {0, 1}) {
    const auto at = static_cast<size_t>(d) + 2;
    const WindowAxis axis = window.axis(d, 2, w && w->size() == 4 ? (*w)[at] : Dim::unknown());
    if (!axis.kernel.is_known() || axis.pad_begin > axis.kernel.value() || axis.stride > most_transposed_stride)
      return fmt::format(
          "a kernel of {} with padding {} and stride {}; padding may be as large as the kernel and the "
          "stride {}",
          axis.kernel.to_string(), axis.pad_begin, axis.stride, most_transposed_stride);
  }
  return "";
}

}  // namespace

void cpu_blocked(CpuKernels& list) {
  list.add_simple("ToBlocked", to_blocked, tenon_domain);
  list.add_simple("FromBlocked", from_blocked, tenon_domain);
  list.add(
      "BlockedConv",
      [](const NodeInfo& info) -> std::unique_ptr<Kernel> {
        if (info.node().input(0)->type.element == ElementType::float16)
          return std::make_unique<BlockedConv<uint16_t>>(info);
        return std::make_unique<BlockedConv<float>>(info);
      },
      decline_conv, tenon_domain);
  list.add(
      "BlockedConvMaxPool", [](const NodeInfo& info) { return std::make_unique<BlockedConv<float>>(info); },
      decline_conv_max_pool, tenon_domain);
  list.add(
      "BlockedConvTranspose", [](const NodeInfo& info) { return std::make_unique<BlockedConvTranspose>(info); },
      decline_conv_transpose, tenon_domain);
}

}  // namespace tenon::ops
