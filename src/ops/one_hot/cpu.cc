#include "ops/one_hot/one_hot.h"

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class OneHot final : public Kernel {
 public:
  explicit OneHot(const NodeInfo& info) : axis_(info.node().int_attribute("axis", -1)) {}

  // Indices outside of the depth set nothing.
  void run(KernelRun& run) const override {
    const Tensor &indices = run.input(0), &values = run.input(2);
    if (values.elements() != 2)
      fail(ErrorCode::shape_mismatch, "values must be [off, on], they have shape {}", values.shape().to_string());
    Tensor& y = run.output(0);
    fill(run.threads(), values.part(0, Shape{}), y);
    if (y.elements() == 0) return;
    int axis = static_cast<int>(axis_ < 0 ? axis_ + y.rank() : axis_);
    int64_t depth = y.dim(axis), inner = y.shape().elements(axis + 1, y.rank());
    for (int64_t i = 0; i < indices.elements(); ++i) {
      int64_t index = number_at(indices, i);
      if (index < 0) index += depth;
      if (index < 0 || index >= depth) continue;
      copy_elements(y.type(), values.raw(), 1, y.mutable_raw(), (i / inner * depth + index) * inner + i % inner, 1);
    }
  }

 private:
  int64_t axis_;
};

}  // namespace

void cpu_one_hot(CpuKernels& list) {
  list.add("OneHot", [](const NodeInfo& info) { return std::make_unique<OneHot>(info); });
}

}  // namespace tenon::ops
