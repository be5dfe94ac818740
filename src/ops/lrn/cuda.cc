#include <fmt/format.h>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/coordinates.h"

namespace tenon::ops {
namespace {

void run_lrn(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const ir::Node& node = run.node();
    auto number = [](float value) { return cuda::number_text(value, ElementType::float64); };
    const std::string text = fmt::format(
        "const i64 c = ({0})i / ({0})v[0] % ({0})v[1], before = c < v[2] ? c : v[2], after = v[1] - 1 - c < v[3] ? "
        "v[1] - 1 - c : "
        "v[3];\n"
        "    A power = 0;\n"
        "    for (i64 k = -before; k <= after; ++k) {{ const A value = widen(x[i + k * v[0]]); power += value * value; "
        "}}\n"
        "    power = (A){1} + (A){2} / (A)v[4] * power;\n"
        "    y[i] = narrow<T>(widen(x[i]) * pow(power, -(A){3}));",
        division_type(x.elements()), number(node.float_attribute("bias", 1)),
        number(node.float_attribute("alpha", 1e-4f)), number(node.float_attribute("beta", 0.75f)));
    const int64_t size = node.int_attribute("size", 1);
    return CudaLoop(run, x.elements(), "const T* x, T* y", text,
                    {x.shape().elements(2, x.rank()), x.dim(1), (size - 1) / 2, size / 2, size}, types_text(x.type()));
  });
  loop.run(run, {x.raw(), y.raw()});
}

}  // namespace

void cuda_lrn(CudaKernels& list) { list.add_simple("LRN", run_lrn, {.types = types::floats}); }

}  // namespace tenon::ops
