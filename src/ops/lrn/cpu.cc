#include <algorithm>
#include <cmath>

#include "kernels/math/math.h"
#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

constexpr int64_t block = 1024;

// power[i] = power[i]^-beta.
void negative_power(float* power, int64_t n, float beta) {
  if (beta == 0.75f) {
    for (int64_t i = 0; i < n; ++i) {
      const float root = std::sqrt(power[i]);
      power[i] = 1 / (root * std::sqrt(root));
    }
    return;
  }
  kernels::f32_log(power, power, n);
  for (int64_t i = 0; i < n; ++i) power[i] *= -beta;
  kernels::f32_exp(power, power, n);
}

void negative_power(double* power, int64_t n, float beta) {
  for (int64_t i = 0; i < n; ++i) power[i] = std::pow(power[i], -static_cast<double>(beta));
}

class Lrn final : public Kernel {
 public:
  explicit Lrn(const NodeInfo& info)
      : alpha_(info.node().float_attribute("alpha", 1e-4f)),
        beta_(info.node().float_attribute("beta", 0.75f)),
        bias_(info.node().float_attribute("bias", 1)),
        size_(info.node().int_attribute("size", 1)) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    if (run.output(0).elements() == 0) return;
    const int64_t channels = shape[1], size = shape.elements(2, shape.rank());
    const int64_t blocks = (size + block - 1) / block;
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T* x = arguments.in(0);
      T* y = arguments.out(0);
      const int64_t grain = 1 + (8 << 10) / std::min(size, block);
      run.threads().parallel_for(shape[0] * channels * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t plane = item / blocks, first = item % blocks * block;
          normalize(x, y, plane, channels, size, first, std::min(block, size - first));
        }
      });
      arguments.finish();
    });
  }

 private:
  template <typename T>
  void normalize(const T* x, T* y, int64_t plane, int64_t channels, int64_t size, int64_t first, int64_t n) const {
    const int64_t c = plane % channels, image = plane - c;
    // The window may be far larger than the image has channels.
    const int64_t from = c - std::min(c, (size_ - 1) / 2), to = c + std::min(channels - 1 - c, size_ / 2);
    T power[block];
    std::fill(power, power + n, T{});
    for (int64_t k = from; k <= to; ++k) {
      const T* row = x + (image + k) * size + first;
      for (int64_t i = 0; i < n; ++i) power[i] += row[i] * row[i];
    }
    const T factor = static_cast<T>(alpha_) / static_cast<T>(size_), bias = static_cast<T>(bias_);
    for (int64_t i = 0; i < n; ++i) power[i] = bias + factor * power[i];
    negative_power(power, n, beta_);
    const T* in = x + plane * size + first;
    T* __restrict out = y + plane * size + first;
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] * power[i];
  }

  float alpha_, beta_, bias_;
  int64_t size_;
};

}  // namespace

void cpu_lrn(CpuKernels& list) {
  list.add("LRN", [](const NodeInfo& info) { return std::make_unique<Lrn>(info); });
}

}  // namespace tenon::ops
