#include <fmt/format.h>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

class ArgReduce final : public Kernel {
 public:
  ArgReduce(const NodeInfo& info, bool largest)
      : axis_(info.node().int_attribute("axis", 0)),
        last_(info.node().int_attribute("select_last_index", 0) != 0),
        largest_(largest) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& blocks = run.per_plan<CudaBlocks>([&] {
      std::vector<int64_t> axes;
      if (x.rank() > 0) axes.push_back(axis_);
      CudaRows rows(ReducePlan(x.shape(), axes));
      const std::string text = rows.begin() + "Placed<A> best = {(A)0, -1};\n  " +
                               rows.each("best = Best::merge(best, Placed<A>{value, i});") +
                               "best = " + rows.fold("Best", "best") + ";\n  if (is_first) y[row] = best.place;";
      return CudaBlocks(run, "const T* x, i64* y", functions(x.type()), text, rows.numbers(), rows.grid());
    });
    blocks.run(run, {x.raw(), y.raw()});
  }

 private:
  // NaN is better than any number. A place below 0 is none.
  std::string functions(ElementType type) const {
    return CudaRows::functions() + types_text(type) +
           fmt::format(R"cuda(
struct Best {{
  static Placed<A> merge(Placed<A> a, Placed<A> b) {{
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
    if (a.value != b.value && !is_nan(a.value)) return a.value {} b.value ? a : b;
    return a.place {} b.place ? a : b;
  }}
}};
)cuda",
                       largest_ ? ">" : "<", last_ ? ">" : "<");
  }

  int64_t axis_;
  bool last_, largest_;
};

}  // namespace

void cuda_arg_reduce(CudaKernels& list) {
  list.add("ArgMax", [](const NodeInfo& info) { return std::make_unique<ArgReduce>(info, true); },
           {.types = types::numbers});
  list.add("ArgMin", [](const NodeInfo& info) { return std::make_unique<ArgReduce>(info, false); },
           {.types = types::numbers});
}

}  // namespace tenon::ops
