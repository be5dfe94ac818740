#include <fmt/format.h>
#include <algorithm>
#include <memory>

#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/conv_shape.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::ConvShape;
using kernels::PackedConvTransposeWeights;
using kernels::PackedConvWeights;

// The kernels pad a copy of the image in memory of their own. Strides and padding can make that far larger than input
// and output are; the run's limit decides then.
void check_padded_image(const KernelRun& run, const ConvShape& s, bool transposed = false) {
  int64_t floats = s.in_channels / s.groups;
  for (int d = 0; d < most_spatial; ++d) {
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
    floats *= transposed ? (s.output[d] + reach) / s.stride[d] + 1 : (s.output[d] - 1) * s.stride[d] + reach;
  }
  if (floats > 4 << 20 && floats > 4 * run.input(0).elements())
    run.scratch(floats * static_cast<int64_t>(sizeof(float)));
}

// Conv and FusedConv; what the latter adds, Conv leaves out.
class Conv final : public Kernel {
 public:
  explicit Conv(const NodeInfo& info)
      : window_(info.node()), groups_(info.node().int_attribute("group", 1)), epilogue_(info.node()) {
    const Tensor* w = info.constant(1);
    if (!w || w->type() == ElementType::float64 || w->elements() == 0 || w->rank() < 3 || w->rank() > most_spatial + 2)
      return;
    if (groups_ < 1 || w->dim(0) % groups_ != 0) return;
    packed_ = info.packed<PackedConvWeights>({1}, fmt::format("{} groups", groups_),
                                             [&](PackedStorage& storage) { return pack(info.threads(), *w, storage); });
  }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &w = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    ConvShape shape = conv_shape(window_, groups_, x.shape(), w.shape(), y.shape());
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *input = arguments.in(0), *bias = arguments.in(2);
      T* output = arguments.out(0);
      if constexpr (std::is_same_v<T, float>) {
        // Nothing to add up: a window over no channels gives the bias.
        if (w.elements() == 0) {
          conv_any<float>(run.threads(), shape, input, nullptr, bias, output);
          epilogue_.apply(output, arguments.in(3), y.elements());
          return arguments.finish();
        }
        check_padded_image(run, shape);
        const kernels::ConvEpilogue epilogue{bias, epilogue_.lo, epilogue_.hi, arguments.in(3), epilogue_.function};
        if (packed_) {
          kernels::conv(run.threads(), shape, input, *packed_, output, epilogue);
        } else {
          kernels::conv(run.threads(), shape, input, pack(run.threads(), w), output, epilogue);
        }
      } else {
        conv_any<T>(run.threads(), shape, input, arguments.in(1), bias, output);
      }
      arguments.finish();
    });
  }

 private:
  PackedConvWeights pack(ThreadPool& pool, const Tensor& w, PackedStorage& storage = fresh_storage()) const {
    ConvShape shape;
    shape.in_channels = checked_mul(w.dim(1), groups_);
    shape.out_channels = w.dim(0);
    shape.groups = groups_;
    for (int d = 2; d < w.rank(); ++d) shape.kernel[most_spatial - w.rank() + d] = w.dim(d);
    const Tensor weights = storage.fills() ? as_type<float>(w, pool) : w;
    return PackedConvWeights(pool, shape, static_cast<const float*>(weights.raw()), storage);
  }

  WindowAttributes window_;
  int64_t groups_;
  FusedEpilogue epilogue_;
  std::shared_ptr<const PackedConvWeights> packed_;
};

// One output plane after the other: input index i adds to output indices i * stride - pad + k * dilation.
void conv_transpose(ThreadPool& pool, const ConvShape& s, const double* x, const double* w, const double* bias,
                    double* y) {
  const int64_t channels = s.in_channels / s.groups, group_outputs = s.out_channels / s.groups;
  pool.parallel_for(s.batch * s.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t n = plane / s.out_channels, oc = plane % s.out_channels, g = oc / group_outputs;
      double* out = y + plane * s.output_size();
      std::fill(out, out + s.output_size(), bias ? bias[oc] : 0.0);
      for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
        const double* image = x + (n * s.in_channels + c) * s.input_size();
        const double* taps = w + (c * group_outputs + oc % group_outputs) * s.kernel_size();
        for (int64_t tap = 0; tap < s.kernel_size(); ++tap) {
          const int64_t at[3] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
          for (int64_t i = 0; i < s.input_size(); ++i) {
            const int64_t from[3] = {i / s.input[2] / s.input[1], i / s.input[2] % s.input[1], i % s.input[2]};
            int64_t index = 0;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t to = from[d] * s.stride[d] - s.pad[d] + at[d] * s.dilation[d];
              inside = inside && to >= 0 && to < s.output[d];
              index = index * s.output[d] + to;
            }
            if (inside) out[index] += taps[tap] * image[i];
          }
        }
      }
    }
  });
}

class ConvTranspose final : public Kernel {
 public:
  explicit ConvTranspose(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        sizes_given_(!info.node().ints_attribute("output_shape").empty()) {
    const Tensor* w = info.constant(1);
    if (!w || w->type() == ElementType::float64 || w->elements() == 0 || w->rank() < 3 || w->rank() > most_spatial + 2)
      return;
    if (groups_ < 1 || w->dim(0) % groups_ != 0) return;
    const ConvShape shape = weights_shape(w->shape());
    if (!PackedConvTransposeWeights::suits(shape)) return;
    const auto key = fmt::format("transposed, {} groups, strides {}, dilations {}", groups_,
                                 fmt::join(shape.stride, " "), fmt::join(shape.dilation, " "));
    packed_ = info.packed<PackedConvTransposeWeights>({1}, key, [&](PackedStorage& storage) {
      const Tensor weights = storage.fills() ? as_type<float>(*w, info.threads()) : *w;
      return PackedConvTransposeWeights(info.threads(), shape, static_cast<const float*>(weights.raw()), storage);
    });
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    ConvShape shape = shape_of(x.shape(), run.input(1).shape(), y.shape());
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *input = arguments.in(0), *bias = arguments.in(2);
      T* output = arguments.out(0);
      if constexpr (std::is_same_v<T, float>) {
        if (packed_) {
          check_padded_image(run, shape, /*transposed=*/true);
          kernels::conv_transpose(run.threads(), shape, input, *packed_, output, {.bias = bias});
        } else {
          kernels::conv_transpose(run.threads(), shape, input, arguments.in(1), output, {.bias = bias});
        }
      } else {
        conv_transpose(run.threads(), shape, input, arguments.in(1), bias, output);
      }
      arguments.finish();
    });
  }

 private:
  // What packed weights depend on.
  ConvShape weights_shape(const Shape& w) const {
    ConvShape s;
    s.in_channels = w[0];
    s.out_channels = checked_mul(w[1], groups_);
    s.groups = groups_;
    const int spatial = w.rank() - 2, first = most_spatial - spatial;
    window_.check(spatial);
    for (int d = 0; d < spatial; ++d) {
      const WindowAxis axis = window_.axis(d, spatial, w[d + 2]);
      s.kernel[first + d] = w[d + 2];
      s.stride[first + d] = axis.stride;
      s.dilation[first + d] = axis.dilation;
    }
    return s;
  }

  ConvShape shape_of(const Shape& x, const Shape& w, const Shape& y) const {
    ConvShape s;
    s.batch = x[0];
    s.in_channels = x[1];
    s.out_channels = y[1];
    s.groups = groups_;
    int spatial = x.rank() - 2, first = most_spatial - spatial;
    int64_t work = checked_mul(16, s.out_channels);
    for (int d = 0; d < spatial; ++d) {
      WindowAxis axis = window_.axis(d, spatial, w[d + 2]);
      s.input[first + d] = x[d + 2];
      s.output[first + d] = y[d + 2];
      s.kernel[first + d] = w[d + 2];
      s.stride[first + d] = axis.stride;
      s.dilation[first + d] = axis.dilation;
      s.pad[first + d] = axis.transposed_pad(x[d + 2], y[d + 2], sizes_given_);
      work = checked_mul(work, checked_mul(std::max<int64_t>(1, x[d + 2]), std::max<int64_t>(1, w[d + 2])));
    }
    return s;
  }

  WindowAttributes window_;
  int64_t groups_;
  bool sizes_given_;
  std::shared_ptr<const PackedConvTransposeWeights> packed_;
};

}  // namespace

void cpu_conv(CpuKernels& list) {
  list.add("Conv", [](const NodeInfo& info) { return std::make_unique<Conv>(info); });
  list.add(
      "FusedConv", [](const NodeInfo& info) { return std::make_unique<Conv>(info); }, nullptr, tenon_domain);
  list.add("ConvTranspose", [](const NodeInfo& info) { return std::make_unique<ConvTranspose>(info); });
}

}  // namespace tenon::ops
