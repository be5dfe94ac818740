#include "ops/cuda_support/strided_copy.h"
#include "ops/slice/slice.h"

namespace tenon::ops {
namespace {

struct Slice {
  Shape shape;
  int64_t first = 0;
  std::optional<CudaStridedCopy> copy;
};

Slice prepare(KernelRun& run, const Tensor& x) {
  const std::vector<int64_t> starts = run.ints(1), ends = run.ints(2),
                             axes = run.has_input(3) ? run.ints(3) : std::vector<int64_t>(),
                             steps = run.has_input(4) ? run.ints(4) : std::vector<int64_t>();
  Slice slice;
  slice.shape = x.shape();
  const std::vector<int64_t> dense = steps_of(x.shape());
  std::vector<int64_t> from = dense;
  // Inference has checked axes and steps.
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(k) : axes[k];
    if (axis < 0) axis += x.rank();
    const auto at = static_cast<size_t>(axis);
    SliceRange range{starts[k], ends[k], steps.empty() ? 1 : steps[k]};
    const int64_t count = range.count_for(x.dim(static_cast<int>(axis)));
    slice.shape[static_cast<int>(axis)] = count;
    if (count > 0) slice.first += range.start * dense[at];
    from[at] = range.step * dense[at];
  }
  if (slice.shape.elements() > 0) slice.copy.emplace(run, x.type(), slice.shape, from, steps_of(slice.shape));
  return slice;
}

void run_slice(KernelRun& run) {
  const Tensor& x = run.input(0);
  const auto& slice = run.per_plan<Slice>([&] { return prepare(run, x); });
  Tensor& y = run.output(0, slice.shape);
  if (slice.copy) slice.copy->run(run, address_at(x, slice.first), y.mutable_raw());
}

}  // namespace

void cuda_slice(CudaKernels& list) {
  list.add_simple("Slice", run_slice, {.types = cuda_movable | types::index, .host_inputs = {1, 2, 3, 4}});
}

}  // namespace tenon::ops
