#include <fmt/format.h>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

// Normalises groups of neighbouring channels of each image; instance normalisation has one channel per group.
class GroupNormalization final : public Kernel {
 public:
  // 0 groups: one per channel.
  GroupNormalization(const NodeInfo& info, int64_t groups)
      : epsilon_(cuda::number_text(info.node().float_attribute("epsilon", 1e-5f), ElementType::float64)),
        groups_(groups) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& blocks = run.per_plan<CudaBlocks>([&] { return prepare(run, x); });
    blocks.run(run, {x.raw(), run.input(1).raw(), run.input(2).raw(), y.raw()});
  }

 private:
  CudaBlocks prepare(KernelRun& run, const Tensor& x) const {
    const int64_t channels = x.dim(1), size = x.shape().elements(2, x.rank());
    const int64_t groups = x.dim(0) * (groups_ == 0 ? channels : groups_);
    CudaRows rows(ReducePlan(Shape{groups, x.elements() / groups}, std::vector<int64_t>{1}));
    rows.use_packs({{"x", x.type(), "e"}, {"y", x.type(), "e", true}});
    std::vector<int64_t> numbers = rows.numbers();
    const std::string channel = groups_ == 0 ? fmt::format("row % v[{}]", numbers.size())
                                             : fmt::format("e / v[{}] % v[{}]", numbers.size() + 1, numbers.size());
    numbers.insert(numbers.end(), {channels, size});
    const std::string text =
        rows.begin() + "A sum = 0, squares = 0;\n  " + rows.each("sum += value;") + "sum = " + rows.fold("Sum", "sum") +
        ";\n  const A mean = sum / (A)size;\n  " + rows.each("squares += (value - mean) * (value - mean);") +
        "squares = " + rows.fold("Sum", "squares") +
        fmt::format(";\n  const A factor = (A)1 / sqrt(squares / (A)size + (A){});\n  ", epsilon_) +
        rows.each(fmt::format(
            "const i64 c = {}; y[e] = narrow<T>((value - mean) * (factor * widen(scale[c])) + widen(bias[c]));",
            channel));
    return {run,
            "const T* x, const T* scale, const T* bias, T* y",
            CudaRows::functions() + types_text(x.type()),
            text,
            numbers,
            rows.grid()};
  }

  std::string epsilon_;
  int64_t groups_;
};

}  // namespace

void cuda_instance_norm(CudaKernels& list) {
  list.add("InstanceNormalization", [](const NodeInfo& info) { return std::make_unique<GroupNormalization>(info, 0); },
           {.types = types::floats});
  list.add("GroupNormalization",
           [](const NodeInfo& info) {
             return std::make_unique<GroupNormalization>(info, info.node().int_attribute("num_groups", 1));
           },
           {.types = types::floats});
}

}  // namespace tenon::ops
