#include "ops/constant/constant.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class ConstantValue final : public Kernel {
 public:
  explicit ConstantValue(const NodeInfo& info) : content_(constant_content(info.node())) {}
  void run(KernelRun& run) const override { run.set_output(0, content_); }

 private:
  Tensor content_;
};

}  // namespace

// Sessions turn Constant nodes into initializers; the kernel serves those that are made later.
void cpu_constant(CpuKernels& list) {
  list.add("Constant", [](const NodeInfo& info) { return std::make_unique<ConstantValue>(info); });
}

}  // namespace tenon::ops
