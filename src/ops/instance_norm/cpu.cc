#include <cmath>

#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/row_statistics.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Normalises groups of neighbouring channels of each image; instance normalisation has one channel per group.
class GroupNormalization final : public Kernel {
 public:
  // 0 groups: one per channel.
  GroupNormalization(const NodeInfo& info, int64_t groups)
      : epsilon_(info.node().float_attribute("epsilon", 1e-5f)), groups_(groups) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    if (run.output(0).elements() == 0) return;
    const int64_t channels = shape[1], size = shape.elements(2, shape.rank());
    const int64_t per_group = groups_ == 0 ? 1 : channels / groups_;
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *x = arguments.in(0), *scale = arguments.in(1), *bias = arguments.in(2);
      T* y = arguments.out(0);
      const int64_t n = per_group * size;
      run.threads().parallel_for(shape[0] * channels / per_group, 1 + (8 << 10) / n, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          const T* from = x + group * n;
          const T mean = row_sum(from, n) / static_cast<T>(n);
          const T variance = row_sum_of_squares(from, mean, n) / static_cast<T>(n);
          const T factor = 1 / std::sqrt(variance + static_cast<T>(epsilon_));
          for (int64_t i = 0; i < per_group; ++i) {
            const int64_t c = (group * per_group + i) % channels;
            const T gain = factor * scale[c];
            const T shift = static_cast<T>(bias[c] - static_cast<double>(mean) * gain);
            scale_row(from + i * size, y + group * n + i * size, size, gain, shift);
          }
        }
      });
      arguments.finish();
    });
  }

 private:
  float epsilon_;
  int64_t groups_;
};

}  // namespace

void cpu_instance_norm(CpuKernels& list) {
  list.add("InstanceNormalization", [](const NodeInfo& info) { return std::make_unique<GroupNormalization>(info, 0); });
  list.add("GroupNormalization", [](const NodeInfo& info) {
    return std::make_unique<GroupNormalization>(info, info.node().int_attribute("num_groups", 1));
  });
}

}  // namespace tenon::ops
