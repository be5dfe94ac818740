#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// Indices outside of the depth set nothing.
void run_one_hot(KernelRun& run) {
  const Tensor &indices = run.input(0), &values = run.input(2);
  if (values.elements() != 2)
    fail(ErrorCode::shape_mismatch, "values must be [off, on], they have shape {}", values.shape().to_string());
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    int64_t axis = run.node().int_attribute("axis", -1);
    if (axis < 0) axis += y.rank();
    const int64_t depth = y.dim(static_cast<int>(axis)),
                  inner = y.shape().elements(static_cast<int>(axis) + 1, y.rank());
    const std::string_view type = moved_type_text(y.type());
    const std::string body = fmt::format(
        "typedef {} I; const I column = (I)i % (I)v[0], row = (I)i / (I)v[0], class_number = row % (I)v[1];\n    "
        "i64 index = {}(widen(indices[(i64)(row / (I)v[1]) * v[0] + column]));\n    if (index < 0) index += v[1];\n    "
        "y[i] = values[index == (i64)class_number];",
        index_text(y.elements()), is_floating(indices.type()) ? "to_int<i64>" : "(i64)");
    return CudaLoop(run, y.elements(),
                    fmt::format("{}indices, const {}* values, {}* y", const_pointer_to(indices), type, type), body,
                    {inner, depth}, to_int_text());
  });
  loop.run(run, {indices.raw(), values.raw(), y.raw()});
}

}  // namespace

void cuda_one_hot(CudaKernels& list) {
  list.add_simple("OneHot", run_one_hot,
                  {.types = types::numbers | types::bools | types::complexes, .host_inputs = {1}});
}

}  // namespace tenon::ops
