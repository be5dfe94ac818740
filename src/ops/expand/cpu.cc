#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

using Strides = SmallVector<int64_t, 12>;

void expand(KernelRun& run) {
  const Tensor& x = run.input(0);
  const Shape shape = output_shape(run, 0);
  if (shape.elements() == x.elements()) return run.set_output(0, x.reshaped(shape));
  Tensor& y = run.output(0);
  auto own = dense_strides(x.shape()), to = dense_strides(shape);
  Strides from;
  int added = shape.rank() - x.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    bool repeated = axis < added || x.dim(axis - added) == 1;
    from.push_back(repeated ? 0 : own[static_cast<size_t>(axis - added)]);
  }
  strided_copy(run.threads(), x.type(), x.raw(), {from.data(), from.size()}, y.mutable_raw(), {to.data(), to.size()},
               shape.dims());
}

// Each axis becomes two: the repeats, which do not move the source, and the axis itself.
void tile(KernelRun& run) {
  const Tensor& x = run.input(0);
  std::vector<int64_t> repeats = run.ints(1);
  if (repeats.size() != static_cast<size_t>(x.rank())) {
    fail(ErrorCode::shape_mismatch, "there are {} repeats for rank {}", repeats.size(), x.rank());
  }
  Shape shape = output_shape(run, 0);
  if (shape == x.shape()) return run.set_output(0, x);
  Tensor& y = run.output(0);
  auto own = dense_strides(x.shape()), dense = dense_strides(shape);
  Strides from, to, sizes;
  for (size_t axis = 0; axis < repeats.size(); ++axis) {
    int64_t size = x.dim(static_cast<int>(axis));
    from.push_back(0);
    to.push_back(size * dense[axis]);
    sizes.push_back(repeats[axis]);
    from.push_back(own[axis]);
    to.push_back(dense[axis]);
    sizes.push_back(size);
  }
  strided_copy(run.threads(), x.type(), x.raw(), {from.data(), from.size()}, y.mutable_raw(), {to.data(), to.size()},
               {sizes.data(), sizes.size()});
}

}  // namespace

void cpu_expand(CpuKernels& list) {
  list.add_simple("Expand", expand);
  list.add_simple("Tile", tile);
}

}  // namespace tenon::ops
