#include <algorithm>
#include <atomic>
#include <random>

#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

template <typename F>
void dispatch_droppable(ElementType type, F&& f) {
  dispatch<float, double, float16, bfloat16, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz>(type, std::forward<F>(f));
}

float as_float(const Tensor& scalar) {
  float value = 0;
  dispatch_droppable(scalar.type(), [&]<typename T>() { value = static_cast<float>(scalar.data<T>()[0]); });
  return value;
}

// At inference the output is the input itself. In training mode elements are dropped by a generator that starts at the
// node's seed, or at another one in each run.
class Dropout final : public Kernel {
 public:
  explicit Dropout(const NodeInfo& info)
      : has_seed_(info.node().attribute("seed")), seed_(static_cast<uint32_t>(info.node().int_attribute("seed", 0))) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    for (size_t i : {1u, 2u}) {
      if (run.has_input(i) && run.input(i).elements() != 1) fail(ErrorCode::shape_mismatch, "input {} must be a scalar", i);
    }
    bool training = run.has_input(2) && run.data<bool>(2)[0];
    float ratio = run.has_input(1) ? as_float(run.input(1)) : 0.5f;
    if (training && !(ratio >= 0 && ratio < 1)) fail(ErrorCode::invalid_value, "ratio is {}; it must be at least 0 and below 1", ratio);
    if (!training || ratio == 0) {
      run.set_output(0, x);
      if (run.wants_output(1)) std::ranges::fill(run.output(1, ElementType::boolean, x.shape()).template mutable_data<bool>(), true);
      return;
    }
    Tensor mask = run.wants_output(1) ? run.output(1) : Tensor(ElementType::boolean, x.shape(), run.allocator());
    auto keep = mask.mutable_data<bool>();
    draw(keep, ratio);
    float scale = 1 / (1 - ratio);
    Tensor& y = run.output(0);
    dispatch_droppable(x.type(), [&]<typename T>() {
      auto in = x.data<T>();
      auto out = y.mutable_data<T>();
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (size_t i = 0; i < in.size(); ++i) out[i] = keep[i] ? T(static_cast<Wide>(in[i]) * static_cast<Wide>(scale)) : T(0.0f);
    });
  }

 private:
  void draw(std::span<bool> keep, double ratio) const {
    static std::atomic<uint32_t> next_seed{1};
    std::mt19937 generator(has_seed_ ? seed_ : next_seed++);
    for (bool& one : keep) {
      uint32_t high = generator() >> 5, low = generator() >> 6;
      one = (high * 67108864.0 + low) / 9007199254740992.0 >= ratio;
    }
  }

  bool has_seed_;
  uint32_t seed_;
};

}  // namespace

void cpu_dropout(CpuKernels& list) {
  list.add("Dropout", [](const NodeInfo& info) { return std::make_unique<Dropout>(info); });
}

}  // namespace tenon::ops
