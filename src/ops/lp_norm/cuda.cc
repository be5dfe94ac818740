#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

void run_lp_norm(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& blocks = run.per_plan<CudaBlocks>([&] {
    const bool squares = run.node().int_attribute("p", 2) == 2;
    CudaRows rows(ReducePlan(x.shape(), std::vector<int64_t>{run.node().int_attribute("axis", -1)}));
    rows.use_packs({{"x", x.type(), "e"}, {"y", x.type(), "e", true}});
    // Where all elements are zero, they stay zero.
    const std::string text =
        rows.begin() + "A norm = 0;\n  " + rows.each(squares ? "norm += value * value;" : "norm += fabs(value);") +
        "norm = " + rows.fold("Sum", "norm") + (squares ? ";\n  norm = sqrt(norm)" : "") +
        ";\n  const A divisor = norm == 0 ? (A)1 : norm;\n  " + rows.each("y[e] = narrow<T>(value / divisor);");
    return CudaBlocks(run, "const T* x, T* y", CudaRows::functions() + types_text(x.type()), text, rows.numbers(),
                      rows.grid());
  });
  blocks.run(run, {x.raw(), y.raw()});
}

}  // namespace

void cuda_lp_norm(CudaKernels& list) { list.add_simple("LpNormalization", run_lp_norm, {.types = types::floats}); }

}  // namespace tenon::ops
