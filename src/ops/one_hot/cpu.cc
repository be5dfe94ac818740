#include "ops/one_hot/one_hot.h"

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
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
    const int64_t* numbers = indices.type() == ElementType::int64 ? indices.data<int64_t>().data() : nullptr;
    dispatch_width(y.type(), [&]<typename T>() {
      const T on = static_cast<const T*>(values.raw())[1];
      T* out = static_cast<T*>(y.mutable_raw());
      for (int64_t i = 0; i < indices.elements(); out += depth * inner) {
        for (int64_t k = 0; k < inner; ++k, ++i) {
          int64_t index = numbers ? numbers[i] : number_at(indices, i);
          if (index < 0) index += depth;
          if (index >= 0 && index < depth) out[index * inner + k] = on;
        }
      }
    });
  }

 private:
  int64_t axis_;
};

}  // namespace

void cpu_one_hot(CpuKernels& list) {
  list.add("OneHot", [](const NodeInfo& info) { return std::make_unique<OneHot>(info); });
}

}  // namespace tenon::ops
