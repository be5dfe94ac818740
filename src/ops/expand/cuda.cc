#include "ops/cuda_support/strided_copy.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

void run_expand(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& copy = run.per_plan<CudaStridedCopy>([&] {
    const std::vector<int64_t> steps = steps_of(x.shape());
    std::vector<int64_t> from(static_cast<size_t>(y.rank()), 0);
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (x.dim(axis) != 1) from[static_cast<size_t>(axis + y.rank() - x.rank())] = steps[static_cast<size_t>(axis)];
    }
    return CudaStridedCopy(run, x.type(), y.shape(), from, steps_of(y.shape()));
  });
  copy.run(run, x.raw(), y.mutable_raw());
}

// Every axis of the output is two: how often, and the input's.
void run_tile(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& copy = run.per_plan<CudaStridedCopy>([&] {
    const std::vector<int64_t> x_steps = steps_of(x.shape()), y_steps = steps_of(y.shape());
    std::vector<int64_t> shape, from, to;
    for (int axis = 0; axis < x.rank(); ++axis) {
      const auto at = static_cast<size_t>(axis);
      shape.insert(shape.end(), {y.dim(axis) / x.dim(axis), x.dim(axis)});
      from.insert(from.end(), {0, x_steps[at]});
      to.insert(to.end(), {y_steps[at] * x.dim(axis), y_steps[at]});
    }
    return CudaStridedCopy(run, x.type(), Shape(std::span<const int64_t>(shape)), from, to);
  });
  copy.run(run, x.raw(), y.mutable_raw());
}

}  // namespace

void cuda_expand(CudaKernels& list) {
  list.add_simple("Expand", run_expand, {.types = cuda_movable, .host_inputs = {1}});
  list.add_simple("Tile", run_tile, {.types = cuda_movable, .host_inputs = {1}});
}

}  // namespace tenon::ops
