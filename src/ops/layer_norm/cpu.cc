#include <cmath>
#include <vector>

#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/row_statistics.h"
#include "ops/fused_types.h"
#include "ops/operator.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// A scale or bias as rows of n elements: one row for all, or one for each row of X.
template <typename T>
struct RowFactors {
  const T* data = nullptr;
  int64_t stride = 0;
  std::vector<T> expanded;

  const T* row(int64_t i) const { return data ? data + i * stride : nullptr; }

  RowFactors() = default;
  RowFactors(const T* from, const Shape& own, const Shape& x, int axis) : data(from) {
    if (!from) return;
    const int rank = x.rank(), missing = rank - own.rank();
    auto size_at = [&](int a) { return a < missing ? 1 : own[a - missing]; };
    bool same_rows = true, whole = true;
    for (int a = 0; a < rank; ++a) {
      if (a < axis && size_at(a) != 1) same_rows = false;
      if (a >= axis && size_at(a) != x[a]) whole = false;
    }
    if (same_rows && whole) return;
    const int first = same_rows ? axis : 0;
    const int64_t total = x.elements(first, rank);
    stride = same_rows ? 0 : x.elements(axis, rank);
    expanded.resize(static_cast<size_t>(total));
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i, index = 0, step = 1;
      for (int a = rank - 1; a >= first; --a) {
        if (size_at(a) != 1) index += rest % x[a] * step;
        rest /= x[a];
        step *= size_at(a);
      }
      expanded[static_cast<size_t>(i)] = from[index];
    }
    data = expanded.data();
  }
};

void apply_row(const float* x, float* y, int64_t n, float mean, float factor, const float* scale, const float* bias) {
  kernels::layer_norm_kernels().apply(x, y, n, mean, factor, scale, bias);
}

void apply_row(const double* x, double* y, int64_t n, double mean, double factor, const double* scale,
               const double* bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * (scale ? scale[i] : 1) + (bias ? bias[i] : 0);
}

// Normalises the last axes of X: by mean and variance, or by the mean of squares alone.
class Normalization final : public Kernel {
 public:
  Normalization(const NodeInfo& info, bool centered)
      : axis_(info.node().int_attribute("axis", -1)),
        epsilon_(info.node().float_attribute("epsilon", 1e-5f)),
        centered_(centered) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + shape.rank() : axis_);
    const int64_t rows = shape.elements(0, axis), n = shape.elements(axis, shape.rank());
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *x = arguments.in(0), *scale = arguments.in(1), *bias = arguments.in(2);
      T *y = arguments.out(0), *means = centered_ ? arguments.out(1) : nullptr,
        *deviations = centered_ ? arguments.out(2) : nullptr;
      RowFactors<T> scales(scale, run.input(1).shape(), shape, axis);
      RowFactors<T> biases = bias ? RowFactors<T>(bias, run.input(2).shape(), shape, axis) : RowFactors<T>();
      if constexpr (std::is_same_v<T, float>) {
        if (n > 0 && scales.stride == 0 && biases.stride == 0) {
          (centered_ ? kernels::layer_norm : kernels::rms_norm)(
              run.threads(), {x, y, rows, n, scales.data, biases.data, epsilon_, means, deviations});
          return arguments.finish();
        }
      }
      run.threads().parallel_for(rows, 1 + (8 << 10) / (n + 1), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x + row * n;
          const T mean = centered_ ? row_sum(from, n) / static_cast<T>(n) : T{};
          const T variance = row_sum_of_squares(from, mean, n) / static_cast<T>(n);
          const T factor = 1 / std::sqrt(variance + static_cast<T>(epsilon_));
          apply_row(from, y + row * n, n, mean, factor, scales.row(row), biases.row(row));
          if (means) means[row] = mean;
          if (deviations) deviations[row] = factor;
        }
      });
      arguments.finish();
    });
  }

 private:
  int64_t axis_;
  float epsilon_;
  bool centered_;
};

// The same of a sum, which is made on the way.
class SkipNormalization final : public Kernel {
 public:
  SkipNormalization(const NodeInfo& info, bool centered)
      : axis_(info.node().int_attribute("axis", -1)),
        epsilon_(info.node().float_attribute("epsilon", 1e-5f)),
        centered_(centered) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    if (x.elements() == 0) return;
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    kernels::NormRows call{run.data<float>(0).data(), run.output(0).mutable_data<float>().data(),
                           x.shape().elements(0, axis), x.shape().elements(axis, x.rank())};
    call.scale = run.data<float>(2).data();
    if (centered_ && run.has_input(3)) call.bias = run.data<float>(3).data();
    call.epsilon = epsilon_;
    const size_t addends[] = {1, centered_ ? size_t{4} : size_t{3}};
    for (size_t i : {0, 1}) {
      if (!run.has_input(addends[i])) continue;
      const auto data = run.data<float>(addends[i]);
      call.addends[i] = {data.data(), static_cast<int64_t>(data.size()) / call.n};
    }
    if (run.wants_output(1)) call.sum = run.output(1).mutable_data<float>().data();
    (centered_ ? kernels::layer_norm : kernels::rms_norm)(run.threads(), call);
  }

  bool may_overwrite(size_t input) const override { return input < 2; }

 private:
  int64_t axis_;
  float epsilon_;
  bool centered_;
};

}  // namespace

void cpu_layer_norm(CpuKernels& list) {
  list.add("LayerNormalization", [](const NodeInfo& info) { return std::make_unique<Normalization>(info, true); });
  list.add("RMSNormalization", [](const NodeInfo& info) { return std::make_unique<Normalization>(info, false); });
  list.add(
      "SkipLayerNormalization", [](const NodeInfo& info) { return std::make_unique<SkipNormalization>(info, true); },
      why_not_fused_on_host, tenon_domain);
  list.add(
      "SkipRMSNormalization", [](const NodeInfo& info) { return std::make_unique<SkipNormalization>(info, false); },
      why_not_fused_on_host, tenon_domain);
}

}  // namespace tenon::ops
