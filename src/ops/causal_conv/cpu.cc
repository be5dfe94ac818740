#include <algorithm>

#include "base/independent_loop.h"
#include "kernels/math/math.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// One channel: `taps` weights slide over past (taps - 1 values, zeros when null) followed by x.
struct Row {
  const float *x, *past, *weight;
  int64_t length, taps;

  void convolve(float bias, float* y) const {
    std::fill_n(y, length, bias);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t reach = taps - 1 - tap, from_past = std::min(reach, length);
      const float factor = weight[tap];
      for (int64_t t = 0; past && t < from_past; ++t) y[t] += factor * past[t + tap];
      const float* shifted = x - from_past;
      TENON_INDEPENDENT_LOOP
      for (int64_t t = from_past; t < length; ++t) y[t] += factor * shifted[t];
    }
  }

  // The last taps - 1 values.
  void keep_state(float* present) const {
    for (int64_t i = 0; i < taps - 1; ++i) {
      const int64_t at = length + i - (taps - 1);
      present[i] = at >= 0 ? x[at] : (past ? past[length + i] : 0.0f);
    }
  }
};

class CausalConv final : public Kernel {
 public:
  explicit CausalConv(const NodeInfo& info)
      : activates_(info.node().string_attribute("activation", "none") != "none") {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    const int64_t channels = shape[1], length = shape[2], taps = run.input(1).dim(2), state = taps - 1;
    ComputeArguments<float> arguments(run);
    const float *x = arguments.in(0), *weight = arguments.in(1), *bias = arguments.in(2), *past = arguments.in(3);
    float *y = arguments.out(0), *present = arguments.out(1);
    const int64_t grain = std::max<int64_t>(1, cheap_grain / (1 + length * taps));
    // A batch without elements may have any size.
    const bool idle = (!y || length == 0) && (!present || state == 0);
    run.threads().parallel_for(idle ? 0 : shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t channel = item % channels;
        const Row row{x + item * length, past ? past + item * state : nullptr, weight + channel * taps, length, taps};
        if (y) row.convolve(bias ? bias[channel] : 0.0f, y + item * length);
        if (present) row.keep_state(present + item * state);
      }
      if (activates_ && y) kernels::f32_silu(y + begin * length, y + begin * length, (end - begin) * length);
    });
    arguments.finish();
  }

 private:
  bool activates_;
};

}  // namespace

void cpu_causal_conv(CpuKernels& list) {
  list.add("CausalConvWithState", [](const NodeInfo& info) { return std::make_unique<CausalConv>(info); });
}

}  // namespace tenon::ops
