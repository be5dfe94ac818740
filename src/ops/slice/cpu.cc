#include "ops/slice/slice.h"

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

void slice(KernelRun& run) {
  const Tensor& x = run.input(0);
  std::vector<int64_t> starts = run.ints(1), ends = run.ints(2), axes, steps;
  if (run.has_input(3)) axes = run.ints(3);
  if (run.has_input(4)) steps = run.ints(4);
  auto fits = [&](const std::vector<int64_t>& list) { return list.empty() || list.size() == starts.size(); };
  if (ends.size() != starts.size() || !fits(axes) || !fits(steps) || starts.size() > static_cast<size_t>(x.rank())) {
    fail(ErrorCode::shape_mismatch, "there are {} starts and {} ends for rank {}", starts.size(), ends.size(),
         x.rank());
  }
  SmallVector<int64_t, 6> strides = dense_strides(x.shape());
  SmallVector<int64_t, 6> from = strides;
  Shape shape = x.shape();
  int64_t first = 0;
  // Inference has checked axes and steps.
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(k) : axes[k];
    if (axis < 0) axis += x.rank();
    SliceRange range{starts[k], ends[k], steps.empty() ? 1 : steps[k]};
    int64_t count = range.count_for(x.dim(static_cast<int>(axis)));
    shape[static_cast<int>(axis)] = count;
    if (count == 0) continue;
    first += range.start * strides[static_cast<size_t>(axis)];
    from[static_cast<size_t>(axis)] = count == 1 ? 1 : range.step * strides[static_cast<size_t>(axis)];
  }
  if (shape.elements() == 0) {
    run.output(0, x.type(), shape);
    return;
  }
  // One contiguous range: each axis that has more than one element is dense in those before it.
  bool contiguous = true;
  int64_t expected = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    contiguous = contiguous && from[static_cast<size_t>(axis)] == expected;
    expected *= shape[axis];
  }
  if (contiguous) return run.set_output(0, x.part(first, shape));
  auto to = dense_strides(shape);
  Tensor& y = run.output(0, x.type(), shape);
  strided_copy(run.threads(), x.type(), element_at(x, first), {from.data(), from.size()}, y.mutable_raw(),
               {to.data(), to.size()}, shape.dims());
}

}  // namespace

void cpu_slice(CpuKernels& list) { list.add_simple("Slice", slice); }

}  // namespace tenon::ops
