#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

std::string text_of(const CudaRows& rows, const ir::Node& node) {
  std::string start = "0", map = "total += value;", op = "Sum", finish = "total / (A)size";
  if (node.op_type == "GlobalMaxPool") {
    start = "-INFINITE", map = "total = most(total, value);", op = "Largest", finish = "total";
  } else if (node.op_type == "GlobalLpPool") {
    const int64_t p = node.int_attribute("p", 2);
    if (p < 1) fail(ErrorCode::invalid_attribute, "p is {}; it must be at least 1", p);
    map = p == 1   ? "total += fabs(value);"
          : p == 2 ? "total += value * value;"
                   : fmt::format("total += pow(fabs(value), (A){});", p);
    finish = p == 1 ? "total" : p == 2 ? "sqrt(total)" : fmt::format("pow(total, (A)1 / (A){})", p);
  }
  return rows.begin() + fmt::format("A total = {};\n  ", start) + rows.each(map) + "total = " + rows.fold(op, "total") +
         fmt::format(";\n  if (is_first) y[row] = narrow<T>({});", finish);
}

void run_global_pool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& blocks = run.per_plan<CudaBlocks>([&] {
    const Shape planes{x.shape().elements(0, 2), x.shape().elements(2, x.rank())};
    CudaRows rows(ReducePlan(planes, std::vector<int64_t>{1}));
    const std::string text = text_of(rows, run.node());
    return CudaBlocks(run, "const T* x, T* y", CudaRows::functions() + types_text(x.type()), text, rows.numbers(),
                      rows.grid());
  });
  blocks.run(run, {x.raw(), y.raw()});
}

}  // namespace

void cuda_global_pool(CudaKernels& list) {
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    list.add_simple(op, run_global_pool, {.types = types::floats});
}

}  // namespace tenon::ops
