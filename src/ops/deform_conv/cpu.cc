#include <cmath>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm_any/gemm_any.h"
#include "ops/cpu_support/bilinear_points.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/conv_shape.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::ConvShape;

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
      // All channels of a group are read at the same positions.
      const int64_t sharing = s.in_channels / offset_groups_;
      run.threads().parallel_for(offset_groups_ * taps, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t group = i / taps, tap = i % taps, first = n * offset_groups_ * taps + i;
          const T *dy = offset + 2 * first * points, *dx = dy + points;
          const BilinearPoints<T> samples = positions(s, tap, dy, dx, mask ? mask + first * points : nullptr);
          const int64_t channel = group * sharing;
          samples.template mix<T>({image + channel * s.input_size(), s.input_size()},
                                  {column + (channel * taps + tap) * points, taps * points}, sharing);
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

  // Where one tap of the kernel reads for every output.
  template <typename T>
  static BilinearPoints<T> positions(const ConvShape& s, int64_t tap, const T* dy, const T* dx, const T* factor) {
    BilinearPoints<T> result(s.input[2]);
    result.reserve(s.output_size());
    const int64_t kh = tap / s.kernel[2], kw = tap % s.kernel[2];
    for (int64_t oh = 0; oh < s.output[1]; ++oh) {
      const auto top = static_cast<T>(oh * s.stride[1] - s.pad[1] + kh * s.dilation[1]);
      for (int64_t ow = 0; ow < s.output[2]; ++ow, ++dy, ++dx) {
        const auto left = static_cast<T>(ow * s.stride[2] - s.pad[2] + kw * s.dilation[2]);
        add_position(top + *dy, left + *dx, factor ? *factor++ : T(1), s.input[1], result);
      }
    }
    return result;
  }

  // Pixels outside the image are zero.
  template <typename T>
  static void add_position(T y, T x, T factor, int64_t height, BilinearPoints<T>& result) {
    const int64_t width = result.width();
    int64_t pixels[4] = {-1, -1, -1, -1};
    T weights[4] = {};
    if (!(y > -1 && y < static_cast<T>(height) && x > -1 && x < static_cast<T>(width)))
      return result.add_apart(pixels, weights);
    const T top = std::floor(y), left = std::floor(x), below = y - top, right = x - left;
    const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
    if (row >= 0 && column >= 0 && row + 1 < height && column + 1 < width)
      return result.add(row * width + column, below, right, factor);
    for (int i = 0; i < 4; ++i) {
      const int64_t h = row + i / 2, w = column + i % 2;
      if (h < 0 || h >= height || w < 0 || w >= width) continue;
      pixels[i] = h * width + w;
      weights[i] = factor * (i / 2 ? below : 1 - below) * (i % 2 ? right : 1 - right);
    }
    result.add_apart(pixels, weights);
  }

  WindowAttributes window_;
  int64_t groups_, offset_groups_;
};

}  // namespace

void cpu_deform_conv(CpuKernels& list) {
  list.add("DeformConv", [](const NodeInfo& info) { return std::make_unique<DeformConv>(info); });
}

}  // namespace tenon::ops
