#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

class Split final : public Kernel {
 public:
  explicit Split(const NodeInfo& info) : axis_(info.node().int_attribute("axis", 0)) {}

  // Parts that are one range of the input share its memory.
  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    int64_t outer = x.shape().elements(0, axis), inner = x.shape().elements(axis + 1, x.rank());
    int64_t row = x.dim(axis) * inner, at = 0;
    for (size_t i = 0; i < run.output_count(); ++i) {
      const Shape& shape = output_shape(run, i);
      int64_t length = shape[axis] * inner;
      if (run.wants_output(i)) {
        if (outer == 1) {
          run.set_output(i, x.part(at, shape));
        } else {
          int64_t from_strides[] = {row, 1}, to_strides[] = {length, 1}, sizes[] = {outer, length};
          strided_copy(run.threads(), x.type(), element_at(x, at), from_strides, run.output(i).mutable_raw(),
                       to_strides, sizes);
        }
      }
      at += length;
    }
  }

 private:
  int64_t axis_;
};

}  // namespace

void cpu_split(CpuKernels& list) {
  list.add("Split", [](const NodeInfo& info) { return std::make_unique<Split>(info); });
}

}  // namespace tenon::ops
