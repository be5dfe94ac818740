#include "base/fail.h"
#include "ops/cast/convert.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class Cast final : public Kernel {
 public:
  explicit Cast(const NodeInfo& info) : to_(static_cast<ElementType>(info.node().int_attribute("to", 0))) {
    options_.saturate = info.node().int_attribute("saturate", 1) != 0;
    options_.round_mode = info.node().string_attribute("round_mode", "up");
    if (options_.round_mode != "up" && options_.round_mode != "down" && options_.round_mode != "nearest") {
      fail(ErrorCode::invalid_attribute, "round_mode is '{}', it must be up, down or nearest", options_.round_mode);
    }
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    ElementType to = run.has_input(1) ? run.input(1).type() : to_;
    if (x.type() == to) return run.set_output(0, x);
    convert_into(x, run.output(0), run.threads(), options_);
  }

 private:
  ElementType to_;  // of Cast; CastLike has an input for it
  ConvertOptions options_;
};

// The elements read as another type of the same width.
void bit_cast_elements(KernelRun& run) {
  const Tensor& x = run.input(0);
  auto to = static_cast<ElementType>(run.node().int_attribute("to", 0));
  run.set_output(0, Tensor::over(to, x.shape(), const_cast<void*>(x.raw()), x.owner()));
}

}  // namespace

void cpu_cast(CpuKernels& list) {
  list.add("Cast", [](const NodeInfo& info) { return std::make_unique<Cast>(info); });
  list.add("CastLike", [](const NodeInfo& info) { return std::make_unique<Cast>(info); });
  list.add_simple("BitCast", bit_cast_elements);
}

}  // namespace tenon::ops
