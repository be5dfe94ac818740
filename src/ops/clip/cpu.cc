#include <limits>

#include "ops/cpu_support/float_vectors.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Where the bounds cross, the upper one wins. NaN stays.
template <typename T, typename C>
void clip(const T* x, T* y, int64_t n, C low, C high) {
  if constexpr (std::is_same_v<T, float>) {
    // Bounds that are NaN are none.
    const FloatVector lowest = FloatVector{} + (low == low ? low : -std::numeric_limits<float>::infinity()),
                      highest = FloatVector{} + (high == high ? high : std::numeric_limits<float>::infinity());
    return map_vectors(x, y, n, [=](FloatVector v) {
      return kernels::bounded_by<false>(highest, kernels::bounded_by<true>(lowest, v));
    });
  }
  for (int64_t i = 0; i < n; ++i) {
    C value = static_cast<C>(x[i]);
    value = value < low ? low : value;
    y[i] = static_cast<T>(value > high ? high : value);
  }
}

class Clip final : public Kernel {
 public:
  void run(KernelRun& run) const override;
  bool may_overwrite(size_t input) const override { return input == 0; }
};

void Clip::run(KernelRun& run) const {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      x.type(), [&]<typename T>() {
        using C = Compute<T>;
        using Limits = std::numeric_limits<C>;
        C low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        C high = Limits::has_infinity ? Limits::infinity() : Limits::max();
        if (run.has_input(1)) low = static_cast<C>(run.data<T>(1)[0]);
        if (run.has_input(2)) high = static_cast<C>(run.data<T>(2)[0]);
        const T* from = x.data<T>().data();
        T* to = y.mutable_data<T>().data();
        run.threads().parallel_for(x.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
          clip<T, C>(from + begin, to + begin, end - begin, low, high);
        });
      });
}

}  // namespace

void cpu_clip(CpuKernels& list) {
  list.add("Clip", [](const NodeInfo&) { return std::make_unique<Clip>(); });
}

}  // namespace tenon::ops
