#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/transpose/transpose.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/row_statistics.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Keeps the deviation of constant data from being zero.
constexpr double least_deviation = 1e-9;

class MeanVarianceNormalization final : public Kernel {
 public:
  explicit MeanVarianceNormalization(const NodeInfo& info) : axes_(info.node().ints_attribute("axes", {0, 2, 3})) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    if (run.output(0).elements() == 0) return;
    // The axes to normalise over go last, so that they make rows.
    std::vector<int64_t> order, back(static_cast<size_t>(shape.rank())), moved;
    auto is_reduced = [&](int64_t axis) {
      return std::ranges::any_of(axes_, [&](int64_t a) { return (a < 0 ? a + shape.rank() : a) == axis; });
    };
    for (bool reduced : {false, true}) {
      for (int64_t axis = 0; axis < shape.rank(); ++axis) {
        if (is_reduced(axis) == reduced) order.push_back(axis);
      }
    }
    int64_t n = 1;
    for (size_t i = 0; i < order.size(); ++i) {
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
      moved.push_back(shape[static_cast<int>(order[i])]);
      if (is_reduced(order[i])) n *= moved.back();
    }
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T* x = arguments.in(0);
      T* y = arguments.out(0);
      Tensor rows(element_type_of<T>, shape, run.allocator());
      T* data = rows.mutable_data<T>().data();
      kernels::transpose(run.threads(), x, data, shape.dims(), order, sizeof(T));
      run.threads().parallel_for(shape.elements() / n, 1 + (8 << 10) / n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* row = data + i * n;
          const T mean = row_sum(row, n) / static_cast<T>(n);
          const T deviation =
              std::sqrt(row_sum_of_squares(row, mean, n) / static_cast<T>(n)) + static_cast<T>(least_deviation);
          for (int64_t k = 0; k < n; ++k) row[k] = (row[k] - mean) / deviation;
        }
      });
      kernels::transpose(run.threads(), data, y, moved, back, sizeof(T));
      arguments.finish();
    });
  }

 private:
  std::vector<int64_t> axes_;
};

}  // namespace

void cpu_mean_variance_norm(CpuKernels& list) {
  list.add("MeanVarianceNormalization",
           [](const NodeInfo& info) { return std::make_unique<MeanVarianceNormalization>(info); });
}

}  // namespace tenon::ops
