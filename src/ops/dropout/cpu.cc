#include <algorithm>

#include "ops/cpu_support/random_seed.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

template <typename F>
void dispatch_droppable(ElementType type, F&& f) {
  dispatch<float, double, float16, bfloat16, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz>(
      type, std::forward<F>(f));
}

float as_float(const Tensor& scalar) {
  float value = 0;
  dispatch_droppable(scalar.type(), [&]<typename T>() { value = static_cast<float>(scalar.data<T>()[0]); });
  return value;
}

// At inference the output is the input itself.
class Dropout final : public Kernel {
 public:
  explicit Dropout(const NodeInfo& info) : seed_(info.node()) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    for (size_t i : {1u, 2u}) {
      if (run.has_input(i) && run.input(i).elements() != 1)
        fail(ErrorCode::shape_mismatch, "input {} must be a scalar", i);
    }
    bool training = run.has_input(2) && run.data<bool>(2)[0];
    float ratio = run.has_input(1) ? as_float(run.input(1)) : 0.5f;
    if (training && !(ratio >= 0 && ratio < 1))
      fail(ErrorCode::invalid_value, "ratio is {}; it must be at least 0 and below 1", ratio);
    if (!training || ratio == 0) {
      run.set_output(0, x);
      if (run.wants_output(1))
        std::ranges::fill(run.output(1, ElementType::boolean, x.shape()).template mutable_data<bool>(), true);
      return;
    }
    bool* mask = run.wants_output(1) ? run.output(1).mutable_data<bool>().data() : nullptr;
    Tensor& y = run.output(0);
    const kernels::RandomNumbers numbers = seed_.numbers();
    dispatch_droppable(x.type(), [&]<typename T>() {
      const T* in = x.data<T>().data();
      T* out = y.mutable_data<T>().data();
      run.threads().parallel_for(x.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
        drop(numbers, begin, in + begin, out + begin, mask ? mask + begin : nullptr, end - begin, ratio);
      });
    });
  }

 private:
  // `mask`, which may be null, says what was kept.
  template <typename T>
  static void drop(const kernels::RandomNumbers& numbers, int64_t first, const T* x, T* y, bool* mask, int64_t n,
                   float ratio) {
    constexpr int64_t block = 512;
    float drawn[block];
    const Compute<T> scale = 1 / (1 - ratio);
    for (int64_t begin = 0; begin < n; begin += block, x += block, y += block) {
      const int64_t size = std::min(block, n - begin);
      numbers.uniform(first + begin, drawn, size);
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < size; ++i) {
        const T kept = T(static_cast<Compute<T>>(x[i]) * scale);
        y[i] = drawn[i] >= ratio ? kept : T(0.0f);
      }
      if (!mask) continue;
      for (int64_t i = 0; i < size; ++i) mask[begin + i] = drawn[i] >= ratio;
    }
  }

  RandomSeed seed_;
};

}  // namespace

void cpu_dropout(CpuKernels& list) {
  list.add("Dropout", [](const NodeInfo& info) { return std::make_unique<Dropout>(info); });
}

}  // namespace tenon::ops
