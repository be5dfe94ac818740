#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/window_function/coefficients.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class Window final : public Kernel {
 public:
  Window(const NodeInfo& info, const WindowCoefficients& coefficients)
      : periodic_(info.node().int_attribute("periodic", 1) != 0), coefficients_(coefficients) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    int64_t steps = periodic_ ? y.elements() : y.elements() - 1;
    dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
             uint64_t>(y.type(), [&]<typename T>() {
      // Integers are what is left of a float, in which a sum that is a hair below 1 is 1.
      using Rounded = std::conditional_t<std::is_same_v<T, double>, double, float>;
      T* out = y.mutable_data<T>().data();
      // A window is the same from both ends.
      const int64_t count = y.elements(), half = std::min(steps / 2 + 1, count);
      run.threads().parallel_for(half, costly_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T value = static_cast<T>(static_cast<Rounded>(at(i, steps)));
          out[i] = value;
          if (steps - i >= half && steps - i < count) out[steps - i] = value;
        }
      });
    });
  }

 private:
  // A symmetric window of one element is its middle.
  double at(int64_t i, int64_t steps) const {
    double t =
        steps > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(steps) : std::numbers::pi;
    const double first = coefficients_.constant - coefficients_.first * std::cos(t);
    return coefficients_.second == 0 ? first : first + coefficients_.second * std::cos(2 * t);
  }

  bool periodic_;
  WindowCoefficients coefficients_;
};

}  // namespace

void cpu_window_function(CpuKernels& list) {
  for (const WindowCoefficients& window : windows) {
    list.add(window.op, [&window](const NodeInfo& info) { return std::make_unique<Window>(info, window); });
  }
}

}  // namespace tenon::ops
