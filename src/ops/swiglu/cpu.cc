#include <algorithm>
#include <cmath>

#include "kernels/math/math.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

void sigmoid(float* x, int64_t n) { kernels::f32_sigmoid(x, x, n); }
void sigmoid(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = 1 / (1 + std::exp(-x[i]));
}

// y = a * sigmoid(alpha * a) * b, in blocks that stay in the cache.
template <typename T>
void swiglu(const T* a, const T* b, T* y, int64_t n, float alpha) {
  using C = Compute<T>;
  constexpr int64_t block = 512;
  C gate[block];
  for (int64_t begin = 0; begin < n; begin += block, a += block, b += block, y += block) {
    const int64_t size = std::min(block, n - begin);
    for (int64_t i = 0; i < size; ++i) gate[i] = static_cast<C>(a[i]) * static_cast<C>(alpha);
    sigmoid(gate, size);
    for (int64_t i = 0; i < size; ++i) y[i] = static_cast<T>(static_cast<C>(a[i]) * gate[i] * static_cast<C>(b[i]));
  }
}

class SwiGlu final : public Kernel {
 public:
  explicit SwiGlu(const NodeInfo& info) : alpha_(info.node().float_attribute("alpha", 1)) {}

  void run(KernelRun& run) const override {
    dispatch<float, double, float16, bfloat16>(run.input(0).type(), [&]<typename T>() {
      const T *a = run.data<T>(0).data(), *b = run.data<T>(1).data();
      Tensor& y = run.output(0);
      T* out = y.mutable_data<T>().data();
      run.threads().parallel_for(y.elements(), costly_grain, [&](int64_t begin, int64_t end) {
        swiglu(a + begin, b + begin, out + begin, end - begin, alpha_);
      });
    });
  }

 private:
  float alpha_;
};

}  // namespace

void cpu_swiglu(CpuKernels& list) {
  list.add("SwiGLU", [](const NodeInfo& info) { return std::make_unique<SwiGlu>(info); });
}

}  // namespace tenon::ops
