#include "ops/concat/cpu_concat.h"

#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {

void concat(ThreadPool& threads, std::span<const Tensor* const> parts, int axis, Tensor& to) {
  int64_t outer = to.shape().elements(0, axis), inner = to.shape().elements(axis + 1, to.rank());
  int64_t row = to.dim(axis) * inner, at = 0;
  for (const Tensor* part : parts) {
    int64_t length = part->dim(axis) * inner;
    if (part->raw() == element_at(to, at)) {  // it was made in its place
      at += length;
      continue;
    }
    int64_t from_strides[] = {length, 1}, to_strides[] = {row, 1}, sizes[] = {outer, length};
    strided_copy(threads, to.type(), part->raw(), from_strides, element_at(to, at), to_strides, sizes);
    at += length;
  }
}

namespace {

class Concat final : public Kernel {
 public:
  explicit Concat(const NodeInfo& info) : axis_(info.node().int_attribute("axis", 0)) {}

  void run(KernelRun& run) const override {
    SmallVector<const Tensor*, 8> parts;
    for (size_t i = 0; i < run.input_count(); ++i) parts.push_back(&run.input(i));
    if (parts.size() == 1) return run.set_output(0, run.value(0));
    Tensor& y = run.output(0);
    concat(run.threads(), {parts.data(), parts.size()}, static_cast<int>(axis_ < 0 ? axis_ + y.rank() : axis_), y);
  }

 private:
  int64_t axis_;
};

}  // namespace

void cpu_concat(CpuKernels& list) {
  list.add("Concat", [](const NodeInfo& info) { return std::make_unique<Concat>(info); });
}

}  // namespace tenon::ops
