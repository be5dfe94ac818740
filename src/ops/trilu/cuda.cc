#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

void run_trilu(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  if (run.has_input(1) && run.input(1).elements() != 1)
    fail(ErrorCode::shape_mismatch, "k must be one number, it has shape {}", run.input(1).shape().to_string());
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const std::string_view type = moved_type_text(x.type());
    const std::string body = fmt::format(
        "typedef {} I; const I column = (I)i % (I)v[1], row = (I)i / (I)v[1] % (I)v[0];\n    i64 k = diagonal ? "
        "*diagonal : 0;\n    "
        "k = k < -v[0] - 1 ? -v[0] - 1 : k > v[1] + 1 ? v[1] + 1 : k;\n    {} r = {{}};\n    "
        "if ((i64)column - (i64)row {} k) r = x[i];\n    y[i] = r;",
        index_text(y.elements()), type, run.node().int_attribute("upper", 1) != 0 ? ">=" : "<=");
    return CudaLoop(run, y.elements(), fmt::format("const {}* x, {}* y, const i64* diagonal", type, type), body,
                    {x.dim(x.rank() - 2), x.dim(x.rank() - 1)});
  });
  loop.run(run, {x.raw(), y.raw(), run.has_input(1) ? run.input(1).raw() : nullptr});
}

class Trilu final : public Kernel {
 public:
  void run(KernelRun& run) const override { run_trilu(run); }
  bool may_overwrite(size_t i) const override { return i == 0; }
};

}  // namespace

void cuda_trilu(CudaKernels& list) {
  list.add("Trilu", [](const NodeInfo&) { return std::make_unique<Trilu>(); }, {.types = cuda_movable});
}

}  // namespace tenon::ops
