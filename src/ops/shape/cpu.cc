#include <algorithm>

#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class ShapeKernel final : public Kernel {
 public:
  explicit ShapeKernel(const NodeInfo& info)
      : start_(info.node().int_attribute("start", 0)), has_end_(info.node().attribute("end")), end_(info.node().int_attribute("end", 0)) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    int64_t rank = shape.rank();
    auto clamp = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
    int64_t start = clamp(start_), end = std::max(start, has_end_ ? clamp(end_) : rank);
    auto out = run.output(0, ElementType::int64, Shape{end - start}).mutable_data<int64_t>();
    std::copy_n(shape.begin() + start, end - start, out.begin());
  }

 private:
  int64_t start_;
  bool has_end_;
  int64_t end_;
};

}  // namespace

void cpu_shape(CpuKernels& list) {
  list.add("Shape", [](const NodeInfo& info) { return std::make_unique<ShapeKernel>(info); });
  list.add_simple("Size", [](KernelRun& run) { run.output(0).mutable_data<int64_t>()[0] = run.input(0).elements(); });
}

}  // namespace tenon::ops
