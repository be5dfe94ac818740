#include <array>

#include "ops/transpose/cpu_permute.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Both are a transpose of the tensor seen with its blocks as axes of their own.
class Blocks final : public Kernel {
 public:
  Blocks(const NodeInfo& info, bool to_space)
      : block_(info.node().int_attribute("blocksize", 1)),
        crd_(info.node().string_attribute("mode", "DCR") == "CRD"),
        to_space_(to_space) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3), b = block_;
    Shape seen;
    std::array<int64_t, 6> order;
    if (!to_space_) {
      seen = Shape{n, c, h / b, b, w / b, b};
      order = crd_ ? std::array<int64_t, 6>{0, 1, 3, 5, 2, 4} : std::array<int64_t, 6>{0, 3, 5, 1, 2, 4};
    } else if (crd_) {
      seen = Shape{n, c / (b * b), b, b, h, w};
      order = {0, 1, 4, 2, 5, 3};
    } else {
      seen = Shape{n, b, b, c / (b * b), h, w};
      order = {0, 3, 4, 1, 5, 2};
    }
    permute(run.threads(), x.reshaped(seen), order, y);
  }

 private:
  int64_t block_;
  bool crd_, to_space_;
};

}  // namespace

void cpu_depth_to_space(CpuKernels& list) {
  list.add("DepthToSpace", [](const NodeInfo& info) { return std::make_unique<Blocks>(info, true); });
  list.add("SpaceToDepth", [](const NodeInfo& info) { return std::make_unique<Blocks>(info, false); });
}

}  // namespace tenon::ops
