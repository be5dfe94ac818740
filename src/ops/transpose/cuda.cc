#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

void run_transpose(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& copy = run.per_plan<CudaStridedCopy>([&] {
    std::vector<int64_t> order = run.node().ints_attribute("perm");
    for (int axis = x.rank() - 1; order.size() < static_cast<size_t>(x.rank()); --axis) order.push_back(axis);
    const std::vector<int64_t> steps = steps_of(x.shape());
    std::vector<int64_t> from;
    for (int64_t axis : order) from.push_back(steps[static_cast<size_t>(axis)]);
    return CudaStridedCopy(run, x.type(), y.shape(), from, steps_of(y.shape()));
  });
  copy.run(run, x.raw(), y.mutable_raw());
}

}  // namespace

void cuda_transpose(CudaKernels& list) { list.add_simple("Transpose", run_transpose, {.types = cuda_movable}); }

}  // namespace tenon::ops
