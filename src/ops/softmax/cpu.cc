#include "ops/cpu_support/extreme.h"
#include "ops/softmax/cpu_log_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/math/math.h"
#include "kernels/softmax/softmax.h"
#include "ops/cast/convert.h"
#include "ops/cpu_support/row_statistics.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

enum class Kind { softmax, logarithm };

void softmax(ThreadPool& threads, Kind kind, const float* x, float* y, const AxisView& view) {
  if (view.inner == 1) {
    auto rows = kind == Kind::softmax ? kernels::softmax_rows : kernels::log_softmax_rows;
    return rows(threads, x, y, view.outer, view.size);
  }
  auto middle = kind == Kind::softmax ? kernels::softmax_middle : kernels::log_softmax_middle;
  middle(threads, x, y, view.outer, view.size, view.inner);
}

// y may not be x.
void softmax_row(Kind kind, const double* x, double* y, int64_t n) {
  const double largest = extreme<true>(x, n);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - largest;
  kernels::f64_exp(y, y, n);
  const double sum = row_sum(y, n), logarithm = std::log(sum);
  for (int64_t i = 0; i < n; ++i) y[i] = kind == Kind::softmax ? y[i] / sum : x[i] - largest - logarithm;
}

void softmax(ThreadPool& threads, Kind kind, const double* x, double* y, const AxisView& view) {
  const int64_t grain = std::max<int64_t>(1, costly_grain / view.size);
  threads.parallel_for(view.outer * view.inner, grain, [&](int64_t begin, int64_t end) {
    if (view.inner == 1) {
      for (int64_t row = begin; row < end; ++row)
        softmax_row(kind, x + row * view.size, y + row * view.size, view.size);
      return;
    }
    std::vector<double> from(static_cast<size_t>(view.size)), to(from.size());
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row / view.inner * view.size * view.inner + row % view.inner;
      for (size_t i = 0; i < from.size(); ++i) from[i] = x[first + static_cast<int64_t>(i) * view.inner];
      softmax_row(kind, from.data(), to.data(), view.size);
      for (size_t i = 0; i < to.size(); ++i) y[first + static_cast<int64_t>(i) * view.inner] = to[i];
    }
  });
}

class Softmax final : public Kernel {
 public:
  Softmax(const NodeInfo& info, Kind kind) : kind_(kind), axis_(info.node().int_attribute("axis", -1)) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (x.elements() == 0) return;
    AxisView view(x.shape(), axis_);
    if (x.type() == ElementType::float32) {
      return softmax(run.threads(), kind_, x.data<float>().data(), y.mutable_data<float>().data(), view);
    }
    if (x.type() == ElementType::float64) {
      return softmax(run.threads(), kind_, x.data<double>().data(), y.mutable_data<double>().data(), view);
    }
    Tensor wide = convert(x, ElementType::float32, run.allocator());
    float* values = wide.mutable_data<float>().data();
    softmax(run.threads(), kind_, values, values, view);
    convert_into(wide, y, run.threads());
  }

 private:
  Kind kind_;
  int64_t axis_;
};

// 1 at the first of the largest elements along the axis (of the NaNs, if there are any), 0 elsewhere.
void run_hardmax(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (x.elements() == 0) return;
  AxisView view(x.shape(), run.node().int_attribute("axis", -1));
  dispatch<float, double, float16, bfloat16>(x.type(), [&]<typename T>() {
    using C = Compute<T>;
    const T* from = x.data<T>().data();
    T* to = y.mutable_data<T>().data();
    int64_t grain = std::max<int64_t>(1, cheap_grain / view.size);
    run.threads().parallel_for(view.outer * view.inner, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t first = row / view.inner * view.size * view.inner + row % view.inner;
        if (view.inner == 1) {
          std::fill_n(to + first, view.size, T(C(0)));
          to[first + find_extreme<true>(from + first, view.size)] = T(C(1));
          continue;
        }
        int64_t best = 0;
        for (int64_t i = 0; i < view.size; ++i) {
          const auto value = static_cast<C>(from[first + i * view.inner]),
                     so_far = static_cast<C>(from[first + best * view.inner]);
          if (value > so_far || (value != value && so_far == so_far)) best = i;
          to[first + i * view.inner] = T(C(0));
        }
        to[first + best * view.inner] = T(C(1));
      }
    });
  });
}

}  // namespace

void log_softmax(ThreadPool& threads, const float* x, float* y, const AxisView& view) {
  softmax(threads, Kind::logarithm, x, y, view);
}

void log_softmax(ThreadPool& threads, const double* x, double* y, const AxisView& view) {
  softmax(threads, Kind::logarithm, x, y, view);
}

void cpu_softmax(CpuKernels& list) {
  list.add("Softmax", [](const NodeInfo& info) { return std::make_unique<Softmax>(info, Kind::softmax); });
  list.add("LogSoftmax", [](const NodeInfo& info) { return std::make_unique<Softmax>(info, Kind::logarithm); });
  list.add_simple("Hardmax", run_hardmax);
}

}  // namespace tenon::ops
