#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

void run_mean_variance_norm(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& blocks = run.per_plan<CudaBlocks>([&] {
    CudaRows rows(ReducePlan(x.shape(), run.node().ints_attribute("axes", {0, 2, 3})));
    rows.use_packs({{"x", x.type(), "e"}, {"y", x.type(), "e", true}});
    // The addend keeps the deviation of constant data from being zero.
    const std::string text =
        rows.begin() + "A sum = 0, squares = 0;\n  " + rows.each("sum += value;") + "sum = " + rows.fold("Sum", "sum") +
        ";\n  const A mean = sum / (A)size;\n  " + rows.each("squares += (value - mean) * (value - mean);") +
        "squares = " + rows.fold("Sum", "squares") + ";\n  const A deviation = sqrt(squares / (A)size) + (A)1e-9;\n  " +
        rows.each("y[e] = narrow<T>((value - mean) / deviation);");
    return CudaBlocks(run, "const T* x, T* y", CudaRows::functions() + types_text(x.type()), text, rows.numbers(),
                      rows.grid());
  });
  blocks.run(run, {x.raw(), y.raw()});
}

}  // namespace

void cuda_mean_variance_norm(CudaKernels& list) {
  list.add_simple("MeanVarianceNormalization", run_mean_variance_norm, {.types = types::floats});
}

}  // namespace tenon::ops
