#include <algorithm>
#include <cstring>
#include <memory>

#include "base/rounding.h"
#include "kernels/conv_nhwc/conv_nhwc.h"
#include "kernels/quantize/codes.h"
#include "kernels/scratch.h"
#include "ops/cpu_support/conv_shape.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/qlinear/cpu_nhwc.h"
#include "ops/qlinear/qlinear.h"

namespace tenon::ops {
namespace {

using kernels::NhwcConvWeights;
using kernels::NhwcRequantization;

int32_t code_of(const Tensor& zero_point) {
  return zero_point.type() == ElementType::int8 ? zero_point.data<int8_t>()[0] : zero_point.data<uint8_t>()[0];
}

std::string decline_conv(const ir::Node& node) {
  return node.int_attribute("channels_last", 0) == 0 ? "channels come first" : why_not_nhwc(node);
}

class NhwcQLinearConv final : public Kernel {
 public:
  explicit NhwcQLinearConv(const NodeInfo& info)
      : window_(info.node()), groups_(info.node().int_attribute("group", 1)), w_shape_(info.constant(3)->shape()) {
    const Tensor &w = *info.constant(3), &x_zero = *info.constant(2), &y_zero = *info.constant(7);
    kernels::ConvShape shape;
    shape.in_channels = w.dim(1) * groups_;
    shape.out_channels = w.dim(0);
    shape.groups = groups_;
    for (int d : {1, 2}) {
      const WindowAxis axis = window_.axis(d - 1, 2, w.dim(d + 1));
      shape.kernel[d] = w.dim(d + 1);
      shape.stride[d] = axis.stride;
      shape.dilation[d] = axis.dilation;
    }
    const auto make = [&](PackedStorage& storage) {
      std::vector<int8_t> codes;
      if (storage.fills()) codes = centered_weights(w, *info.constant(5));
      return NhwcConvWeights(info.threads(), shape, codes.data(),
                             kernels::nhwc_conv_kernels(x_zero.type() == ElementType::uint8), storage);
    };
    const std::string layout =
        fmt::format("{} groups, stride {}, dilation {}", groups_, shape.stride[2], shape.dilation[2]);
    weights_ = info.packed<NhwcConvWeights>({3, 5}, layout, make);
    if (!weights_) weights_ = std::make_shared<const NhwcConvWeights>(make(fresh_storage()));

    // What the kernels' codes are more than the tensor's.
    const int32_t shift = weights_->kernels().unsigned_pixels ? 128 : 0;
    const int32_t own = x_zero.type() == ElementType::int8 ? 0 : 128;
    const int32_t zero = code_of(x_zero) + shift - own;
    flips_ = shift != own;
    outside_ = static_cast<uint8_t>(zero);
    std::vector<float> scales;
    for (float w_scale : info.constant(4)->data<float>())
      scales.push_back(info.constant(1)->data<float>()[0] * w_scale / info.constant(6)->data<float>()[0]);
    const Tensor* bias = info.constant(8);
    requantization_ = std::make_unique<NhwcRequantization>(weights_->kernels(), weights_->sums(), zero,
                                                           bias ? bias->data<int32_t>() : std::span<const int32_t>(),
                                                           scales, code_of(y_zero), y_zero.type() == ElementType::int8);
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto first = [](const Shape& s) { return Shape{s[0], s[3], s[1], s[2]}; };
    const auto shape = conv_shape(window_, groups_, first(x.shape()), w_shape_, first(y.shape()));
    const auto* codes = static_cast<const uint8_t*>(x.raw());
    const kernels::Scratch flipped(flips_ ? static_cast<size_t>(x.elements()) : 0);
    if (flips_) {
      auto* to = flipped.as<uint8_t>();
      run.threads().parallel_for(x.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
        kernels::flip_codes(codes + begin, to + begin, end - begin);
      });
      codes = to;
    }
    kernels::conv_nhwc(run.threads(), shape, codes, outside_, *weights_, *requantization_,
                       static_cast<uint8_t*>(y.mutable_raw()));
  }

 private:
  WindowAttributes window_;
  int64_t groups_;
  Shape w_shape_;
  std::shared_ptr<const NhwcConvWeights> weights_;
  std::unique_ptr<NhwcRequantization> requantization_;
  bool flips_ = false;  // the kernels' codes are signed otherwise than x's
  uint8_t outside_ = 0;
};

// The places [first, last) of a window's steps that lie within `size` pixels, where the window starts at `begin`.
struct Inside {
  int64_t first, last;
  Inside(int64_t begin, int64_t size, const WindowAxis& axis) : first(0), last(axis.kernel.value()) {
    if (begin < 0) first = divide_up(-begin, axis.dilation);
    if (begin + (last - 1) * axis.dilation >= size) last = begin < size ? divide_up(size - begin, axis.dilation) : 0;
  }
};

template <typename T>
void max_pool(KernelRun& run, const WindowAttributes& window) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  const int64_t channels = x.dim(3), height = x.dim(1), width = x.dim(2), out_height = y.dim(1), out_width = y.dim(2);
  const WindowAxis down = window.axis(0, 2), right = window.axis(1, 2);
  const int64_t top = down.pads(height, out_height).first, left = right.pads(width, out_width).first;
  const T* from = x.data<T>().data();
  T* to = y.mutable_data<T>().data();
  const auto run_row = [&](int64_t row, std::vector<const T*>& pixels) {
    const int64_t h = row % out_height * down.stride - top;
    const Inside rows(h, height, down);
    const T* image = from + (row / out_height * height + h) * width * channels;
    T* out = to + row * out_width * channels;
    for (int64_t w = -left; w < out_width * right.stride - left; w += right.stride, out += channels) {
      const Inside columns(w, width, right);
      const T** last = pixels.data();
      for (int64_t i = rows.first; i < rows.last; ++i) {
        const T* line = image + (i * down.dilation * width + w) * channels;
        for (int64_t j = columns.first; j < columns.last; ++j) *last++ = line + j * right.dilation * channels;
      }
      if (last == pixels.data())
        std::fill_n(out, channels, std::numeric_limits<T>::lowest());
      else
        kernels::greatest_codes(pixels.data(), last - pixels.data(), channels, out);
    }
  };
  const auto most = static_cast<size_t>(down.kernel.value() * right.kernel.value());
  const int64_t rows = y.dim(0) * out_height, grain = 1 + cheap_grain / (out_width * channels + 1);
  run.threads().parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<const T*> pixels(most);  // of a window
    for (int64_t row = begin; row < end; ++row) run_row(row, pixels);
  });
}

class NhwcMaxPool final : public Kernel {
 public:
  explicit NhwcMaxPool(const NodeInfo& info) : window_(info.node()) {}
  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    dispatch<int8_t, uint8_t>(run.input(0).type(), [&]<typename T>() { max_pool<T>(run, window_); });
  }

 private:
  WindowAttributes window_;
};

std::string decline_max_pool(const ir::Node& node) {
  return node.ints_attribute("kernel_shape").size() == 2 ? "" : "it does not have two spatial axes";
}

}  // namespace

void cpu_nhwc(CpuKernels& list) {
  list.add(
      "QLinearConv", [](const NodeInfo& info) { return std::make_unique<NhwcQLinearConv>(info); }, decline_conv,
      microsoft);
  list.add(
      "NhwcMaxPool", [](const NodeInfo& info) { return std::make_unique<NhwcMaxPool>(info); }, decline_max_pool,
      microsoft);
}

}  // namespace tenon::ops
