#include <cmath>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_any.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/conv_shape.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::ConvShape;

// The image between its pixels; zero outside.
template <typename T>
T pixel(const T* image, int64_t height, int64_t width, T y, T x) {
  if (!(y > -1 && y < static_cast<T>(height) && x > -1 && x < static_cast<T>(width))) return 0;
  const T top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  const auto h = static_cast<int64_t>(top), w = static_cast<int64_t>(left);
  auto at = [&](int64_t r, int64_t c) {
    return r < 0 || r >= height || c < 0 || c >= width ? T(0) : image[r * width + c];
  };
  return (1 - dy) * ((1 - dx) * at(h, w) + dx * at(h, w + 1)) + dy * ((1 - dx) * at(h + 1, w) + dx * at(h + 1, w + 1));
}

void multiply(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias,
              float* c) {
  kernels::GemmEpilogue epilogue;
  epilogue.addend = bias;
  epilogue.addend_row_stride = 1;
  kernels::gemm(pool, m, n, k, {a, k}, {b, n}, c, n, epilogue);
}

void multiply(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const double* a, const double* b, const double* bias,
              double* c) {
  kernels::gemm_any<double>(pool, m, n, k, {a, k}, {b, n}, c, n);
  for (int64_t i = 0; bias && i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] += bias[i];
  }
}

class DeformConv final : public Kernel {
 public:
  explicit DeformConv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        offset_groups_(info.node().int_attribute("offset_group", 1)) {}

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    const ConvShape s = conv_shape(window_, groups_, run.input(0).shape(), run.input(1).shape(), run.output(0).shape());
    dispatch_compute(run.input(0).type(), [&]<typename T>() { compute<T>(run, s); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run, const ConvShape& s) const {
    ComputeArguments<T> arguments(run);
    const T *x = arguments.in(0), *w = arguments.in(1), *offset = arguments.in(2), *bias = arguments.in(3),
            *mask = arguments.in(4);
    T* y = arguments.out(0);
    const int64_t taps = s.kernel_size(), points = s.output_size(), channels = s.in_channels / s.groups,
                  outputs = s.out_channels / s.groups;
    Tensor columns(element_type_of<T>, Shape{s.in_channels, taps, points}, run.allocator());
    T* column = columns.mutable_data<T>().data();
    for (int64_t n = 0; n < s.batch; ++n) {
      const T* image = x + n * s.in_channels * s.input_size();
      run.threads().parallel_for(s.in_channels * taps, 1 + 2048 / points, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t c = i / taps, tap = i % taps, group = c / (s.in_channels / offset_groups_);
          const int64_t first = (n * offset_groups_ + group) * taps + tap;
          const T *dy = offset + 2 * first * points, *dx = dy + points;
          const T* factor = mask ? mask + first * points : nullptr;
          sample(s, image + c * s.input_size(), tap, dy, dx, factor, column + i * points);
        }
      });
      for (int64_t g = 0; g < s.groups; ++g) {
        multiply(run.threads(), outputs, points, channels * taps, w + g * outputs * channels * taps,
                 column + g * channels * taps * points, bias ? bias + g * outputs : nullptr,
                 y + (n * s.out_channels + g * outputs) * points);
      }
    }
    arguments.finish();
  }

  // What one tap of the kernel reads at every output position.
  template <typename T>
  static void sample(const ConvShape& s, const T* image, int64_t tap, const T* dy, const T* dx, const T* factor,
                     T* to) {
    const int64_t kh = tap / s.kernel[2], kw = tap % s.kernel[2];
    for (int64_t oh = 0; oh < s.output[1]; ++oh) {
      for (int64_t ow = 0; ow < s.output[2]; ++ow) {
        const int64_t i = oh * s.output[2] + ow;
        const T y = static_cast<T>(oh * s.stride[1] - s.pad[1] + kh * s.dilation[1]) + dy[i];
        const T x = static_cast<T>(ow * s.stride[2] - s.pad[2] + kw * s.dilation[2]) + dx[i];
        to[i] = pixel(image, s.input[1], s.input[2], y, x) * (factor ? factor[i] : T(1));
      }
    }
  }

  WindowAttributes window_;
  int64_t groups_, offset_groups_;
};

}  // namespace

void cpu_deform_conv(CpuKernels& list) {
  list.add("DeformConv", [](const NodeInfo& info) { return std::make_unique<DeformConv>(info); });
}

}  // namespace tenon::ops
