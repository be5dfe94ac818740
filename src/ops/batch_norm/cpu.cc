#include <cmath>
#include <vector>

#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/row_statistics.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// y = x * scale + shift, one pair per channel.
struct Affine {
  std::vector<double> scale, shift;

  void set(size_t channel, double gain, double bias, double mean, double variance, double epsilon) {
    scale[channel] = gain / std::sqrt(variance + epsilon);
    shift[channel] = bias - mean * scale[channel];
  }
};

Affine affine_of(const Tensor& gain, const Tensor& bias, const Tensor& mean, const Tensor& variance, double epsilon,
                 ThreadPool& pool) {
  Tensor g = as_type<double>(gain, pool), b = as_type<double>(bias, pool), m = as_type<double>(mean, pool),
         v = as_type<double>(variance, pool);
  auto channels = static_cast<size_t>(g.elements());
  Affine result{std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    result.set(c, g.data<double>()[c], b.data<double>()[c], m.data<double>()[c], v.data<double>()[c], epsilon);
  }
  return result;
}

struct Layout {
  int64_t batch, channels, size;
  explicit Layout(const Shape& x)
      : batch(x[0]), channels(x.rank() == 1 ? 1 : x[1]), size(x.rank() < 3 ? 1 : x.elements(2, x.rank())) {}
};

template <typename T>
void apply(ThreadPool& pool, const Layout& l, const T* x, T* y, const Affine& affine) {
  std::vector<T> scale(affine.scale.begin(), affine.scale.end()), shift(affine.shift.begin(), affine.shift.end());
  if (l.size == 1) {
    pool.parallel_for(l.batch, 1 + (16 << 10) / (l.channels + 1), [&](int64_t begin, int64_t end) {
      const T* __restrict factors = scale.data(), * __restrict addends = shift.data();
      for (int64_t n = begin; n < end; ++n) {
        const T* from = x + n * l.channels;
        T* __restrict to = y + n * l.channels;
        for (int64_t c = 0; c < l.channels; ++c) to[c] = from[c] * factors[c] + addends[c];
      }
    });
    return;
  }
  pool.parallel_for(l.batch * l.channels, 1 + (16 << 10) / (l.size + 1), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      auto c = static_cast<size_t>(plane % l.channels);
      scale_row(x + plane * l.size, y + plane * l.size, l.size, scale[c], shift[c]);
    }
  });
}

// The mean and variance of each channel over the batch and the image.
template <typename T>
void statistics(ThreadPool& pool, const Layout& l, const T* x, std::vector<double>& means,
                std::vector<double>& variances) {
  const double count = static_cast<double>(l.batch * l.size);
  pool.parallel_for(l.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0, squares = 0;
      for (int64_t n = 0; n < l.batch; ++n) sum += row_sum(x + (n * l.channels + c) * l.size, l.size);
      const double mean = sum / count;
      for (int64_t n = 0; n < l.batch; ++n) {
        squares += row_sum_of_squares(x + (n * l.channels + c) * l.size, static_cast<T>(mean), l.size);
      }
      means[static_cast<size_t>(c)] = mean;
      variances[static_cast<size_t>(c)] = squares / count;
    }
  });
}

class BatchNormalization final : public Kernel {
 public:
  explicit BatchNormalization(const NodeInfo& info)
      : epsilon_(info.node().float_attribute("epsilon", 1e-5f)),
        momentum_(info.node().float_attribute("momentum", 0.9f)),
        training_(info.node().int_attribute("training_mode", 0) != 0) {
    for (size_t i = 1; i <= 4; ++i) {
      if (!info.constant(i) || info.constant(i)->elements() != info.constant(1)->elements()) return;
    }
    constant_ =
        affine_of(*info.constant(1), *info.constant(2), *info.constant(3), *info.constant(4), epsilon_, info.threads());
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Layout layout(x.shape());
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T* in = arguments.in(0);
      Affine own;
      const Affine* affine = &own;
      if (training_) {
        own = train<T>(run, arguments, layout, in);
      } else if (!constant_.scale.empty()) {
        affine = &constant_;
      } else {
        own = affine_of(run.input(1), run.input(2), run.input(3), run.input(4), epsilon_, run.threads());
      }
      if (T* out = arguments.out(0); out && x.elements() > 0) apply(run.threads(), layout, in, out, *affine);
      arguments.finish();
    });
    if (training_) return;
    run.set_output(1, run.value(3));
    run.set_output(2, run.value(4));
  }

 private:
  template <typename T>
  Affine train(KernelRun& run, ComputeArguments<T>& arguments, const Layout& l, const T* x) const {
    auto channels = static_cast<size_t>(l.channels);
    std::vector<double> means(channels), variances(channels);
    statistics(run.threads(), l, x, means, variances);
    const T *gain = arguments.in(1), *bias = arguments.in(2), *mean = arguments.in(3), *variance = arguments.in(4);
    T *running_mean = arguments.out(1), *running_variance = arguments.out(2);
    Affine result{std::vector<double>(channels), std::vector<double>(channels)};
    for (size_t c = 0; c < channels; ++c) {
      result.set(c, gain[c], bias[c], means[c], variances[c], epsilon_);
      if (running_mean) running_mean[c] = static_cast<T>(mean[c] * momentum_ + means[c] * (1 - momentum_));
      if (running_variance)
        running_variance[c] = static_cast<T>(variance[c] * momentum_ + variances[c] * (1 - momentum_));
    }
    return result;
  }

  double epsilon_, momentum_;
  bool training_;
  Affine constant_;
};

}  // namespace

void cpu_batch_norm(CpuKernels& list) {
  list.add("BatchNormalization", [](const NodeInfo& info) { return std::make_unique<BatchNormalization>(info); });
}

}  // namespace tenon::ops
