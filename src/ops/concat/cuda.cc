#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

struct Part {
  size_t input;
  int64_t first;  // element of the output
  CudaStridedCopy copy;
};

void run_concat(KernelRun& run) {
  Tensor& y = run.output(0);
  const auto& parts = run.per_plan<std::vector<Part>>([&] {
    std::vector<Part> list;
    int64_t axis = run.node().int_attribute("axis", 0);
    if (axis < 0) axis += y.rank();
    const std::vector<int64_t> to = steps_of(y.shape());
    int64_t first = 0;
    for (size_t i = 0; i < run.input_count(); ++i) {
      const Tensor& x = run.input(i);
      if (x.elements() > 0)
        list.push_back({i, first, CudaStridedCopy(run, x.type(), x.shape(), steps_of(x.shape()), to)});
      first += x.dim(static_cast<int>(axis)) * to[static_cast<size_t>(axis)];
    }
    return list;
  });
  for (const Part& part : parts) {
    // Those that were computed in place are there.
    const void* from = run.input(part.input).raw();
    void* to = address_at(y, part.first);
    if (from != to) part.copy.run(run, from, to);
  }
}

}  // namespace

void cuda_concat(CudaKernels& list) { list.add_simple("Concat", run_concat, {.types = cuda_movable}); }

}  // namespace tenon::ops
