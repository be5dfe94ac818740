#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// Both are a transpose of the tensor seen with its blocks as axes of their own.
template <bool to_space>
void move_blocks(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& copy = run.per_plan<CudaStridedCopy>([&] {
    const int64_t b = run.node().int_attribute("blocksize", 1);
    const bool crd = run.node().string_attribute("mode", "DCR") == "CRD";
    const int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
    Shape seen;
    std::vector<size_t> order;
    if (!to_space) {
      seen = Shape{n, c, h / b, b, w / b, b};
      order = crd ? std::vector<size_t>{0, 1, 3, 5, 2, 4} : std::vector<size_t>{0, 3, 5, 1, 2, 4};
    } else if (crd) {
      seen = Shape{n, c / (b * b), b, b, h, w};
      order = {0, 1, 4, 2, 5, 3};
    } else {
      seen = Shape{n, b, b, c / (b * b), h, w};
      order = {0, 3, 4, 1, 5, 2};
    }
    const std::vector<int64_t> steps = steps_of(seen);
    std::vector<int64_t> sizes, from;
    for (size_t axis : order) {
      sizes.push_back(seen[static_cast<int>(axis)]);
      from.push_back(steps[axis]);
    }
    const Shape moved{std::span<const int64_t>(sizes)};
    return CudaStridedCopy(run, x.type(), moved, from, steps_of(moved));
  });
  copy.run(run, x.raw(), y.mutable_raw());
}

}  // namespace

void cuda_depth_to_space(CudaKernels& list) {
  list.add_simple("DepthToSpace", move_blocks<true>, {.types = cuda_movable});
  list.add_simple("SpaceToDepth", move_blocks<false>, {.types = cuda_movable});
}

}  // namespace tenon::ops
