#include <algorithm>
#include <cmath>

#include "base/independent_loop.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/row_statistics.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

constexpr int64_t block = 256;

class LpNormalization final : public Kernel {
 public:
  explicit LpNormalization(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", -1)), squares_(info.node().int_attribute("p", 2) == 2) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    if (run.output(0).elements() == 0) return;
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + shape.rank() : axis_);
    const int64_t outer = shape.elements(0, axis), n = shape[axis], inner = shape.elements(axis + 1, shape.rank());
    const int64_t blocks = (inner + block - 1) / block;
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T* x = arguments.in(0);
      T* y = arguments.out(0);
      run.threads().parallel_for(
          outer * blocks, 1 + (16 << 10) / (n * std::min(inner, block)), [&](int64_t begin, int64_t end) {
            for (int64_t item = begin; item < end; ++item) {
              const int64_t first = item / blocks * n * inner + item % blocks * block;
              if (inner == 1)
                normalize_row(x + first, y + first, n);
              else
                normalize(x + first, y + first, n, inner, std::min(block, inner - item % blocks * block));
            }
          });
      arguments.finish();
    });
  }

 private:
  template <typename T>
  void normalize_row(const T* x, T* y, int64_t n) const {
    T norm;
    if (squares_) {
      norm = std::sqrt(row_sum_of_squares(x, T{}, n));
    } else {
      constexpr int64_t lanes = 16;
      T sums[lanes] = {};
      int64_t i = 0;
      for (; i + lanes <= n; i += lanes) {
        for (int64_t lane = 0; lane < lanes; ++lane) sums[lane] += std::fabs(x[i + lane]);
      }
      for (; i < n; ++i) sums[0] += std::fabs(x[i]);
      norm = 0;
      for (T sum : sums) norm += sum;
    }
    const T divisor = norm == 0 ? 1 : norm;
    TENON_INDEPENDENT_LOOP
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
  }

  // Columns of n elements, `stride` apart, `columns` of them next to each other.
  template <typename T>
  void normalize(const T* x, T* y, int64_t n, int64_t stride, int64_t columns) const {
    T norm[block];
    std::fill(norm, norm + columns, T{});
    for (int64_t k = 0; k < n; ++k) {
      const T* row = x + k * stride;
      for (int64_t i = 0; i < columns; ++i) norm[i] += squares_ ? row[i] * row[i] : std::fabs(row[i]);
    }
    for (int64_t i = 0; i < columns; ++i) {
      const T value = squares_ ? std::sqrt(norm[i]) : norm[i];
      // Where all elements are zero, they stay zero.
      norm[i] = value == 0 ? 1 : value;
    }
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t i = 0; i < columns; ++i) y[k * stride + i] = x[k * stride + i] / norm[i];
    }
  }

  int64_t axis_;
  bool squares_;
};

}  // namespace

void cpu_lp_norm(CpuKernels& list) {
  list.add("LpNormalization", [](const NodeInfo& info) { return std::make_unique<LpNormalization>(info); });
}

}  // namespace tenon::ops
