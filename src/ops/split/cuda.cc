#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

struct Part {
  size_t output;
  int64_t first;  // element of the input
  CudaStridedCopy copy;
};

void run_split(KernelRun& run) {
  const Tensor& x = run.input(0);
  int64_t axis = run.node().int_attribute("axis", 0);
  if (axis < 0) axis += x.rank();
  const auto& parts = run.per_plan<std::vector<Part>>([&] {
    std::vector<Part> list;
    const std::vector<int64_t> from = steps_of(x.shape());
    int64_t first = 0;
    for (size_t i = 0; i < run.output_count(); ++i) {
      const Shape& shape = *run.inferred_shape(i);
      if (run.wants_output(i) && shape.elements() > 0)
        list.push_back({i, first, CudaStridedCopy(run, x.type(), shape, from, steps_of(shape))});
      first += shape[static_cast<int>(axis)] * from[static_cast<size_t>(axis)];
    }
    return list;
  });
  for (const Part& part : parts) {
    const void* from = address_at(x, part.first);
    Tensor& y = run.output(part.output);
    if (from != y.raw()) part.copy.run(run, from, y.mutable_raw());
  }
}

}  // namespace

void cuda_split(CudaKernels& list) { list.add_simple("Split", run_split, {.types = cuda_movable, .host_inputs = {1}}); }

}  // namespace tenon::ops
