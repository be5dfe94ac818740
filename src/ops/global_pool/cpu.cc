#include <cmath>
#include <limits>

#include "kernels/layer_norm/layer_norm.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/extreme.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Calls reduce(plane, size) for every plane of the first input, to fill the first output.
template <typename Reduce>
void each_plane(KernelRun& run, Reduce reduce) {
  const Shape& shape = run.input(0).shape();
  const int64_t planes = shape.elements(0, 2), size = shape.elements(2, shape.rank());
  if (run.output(0).elements() == 0) return;
  dispatch_compute(run.input(0).type(), [&]<typename T>() {
    ComputeArguments<T> arguments(run);
    const T* x = arguments.in(0);
    T* y = arguments.out(0);
    run.threads().parallel_for(planes, 1 + (16 << 10) / (size + 1), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) y[plane] = reduce(x + plane * size, size);
    });
    arguments.finish();
  });
}

struct Mean {
  float operator()(const float* x, int64_t n) const {
    return kernels::layer_norm_kernels().sum(x, n) / static_cast<float>(n);
  }
  double operator()(const double* x, int64_t n) const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum / static_cast<double>(n);
  }
};

struct Maximum {
  template <typename T>
  T operator()(const T* x, int64_t n) const {
    return n > 0 ? extreme<true>(x, n) : -std::numeric_limits<T>::infinity();
  }
};

struct Norm {
  int64_t p;
  template <typename T>
  T operator()(const T* x, int64_t n) const {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      T value = std::fabs(x[i]);
      sum += p == 1 ? value : p == 2 ? value * value : std::pow(value, static_cast<T>(p));
    }
    return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / static_cast<T>(p));
  }
};

void run_norm(KernelRun& run) {
  int64_t p = run.node().int_attribute("p", 2);
  if (p < 1) fail(ErrorCode::invalid_attribute, "p is {}; it must be at least 1", p);
  each_plane(run, Norm{p});
}

}  // namespace

void cpu_global_pool(CpuKernels& list) {
  list.add_simple("GlobalAveragePool", [](KernelRun& run) { each_plane(run, Mean{}); });
  list.add_simple("GlobalMaxPool", [](KernelRun& run) { each_plane(run, Maximum{}); });
  list.add_simple("GlobalLpPool", run_norm);
}

}  // namespace tenon::ops
