#include "base/fail.h"
#include "ops/cuda_support/strided_copy.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// Indices count the elements of the smallest image that pools to X; output_shape may ask for a larger one, of which
// that image is the corner. An index outside of it is left out.
CudaLoop prepare(KernelRun& run, const Tensor& x, const Tensor& y) {
  const WindowAttributes window(run.node());
  const int spatial = x.rank() - 2;
  Shape pooled{x.dim(0), x.dim(1)};
  for (int d = 0; d < spatial; ++d) pooled.push_back(window.axis(d, spatial).transposed_output(x.dim(d + 2)).value());
  for (int64_t size : pooled) {
    if (size < 0) fail(ErrorCode::shape_mismatch, "the padding leaves an image of shape {}", pooled.to_string());
  }
  std::vector<int64_t> numbers{pooled.elements()};
  numbers.insert(numbers.end(), pooled.begin(), pooled.end());
  numbers.insert(numbers.end(), y.shape().begin(), y.shape().end());
  std::string text = "const i64 index = indices[i];\n    if (index < 0 || index >= v[0]) continue;\n    " +
                     coordinates_text(x.rank(), 1, "index") + "i64 at = 0;\n    ";
  for (int axis = 0; axis < x.rank(); ++axis)
    text += fmt::format("if (c{0} >= v[{1}]) continue;\n    at = at * v[{1}] + c{0};\n    ", axis, 1 + x.rank() + axis);
  return {run,
          x.elements(),
          "const T* x, const i64* indices, T* y",
          text + "y[at] = x[i];",
          numbers,
          fmt::format("typedef {} T;\n", moved_type_text(x.type()))};
}

void run_max_unpool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
  if (x.elements() == 0 || y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, x, y); });
  loop.run(run, {x.raw(), run.input(1).raw(), y.raw()});
}

}  // namespace

void cuda_max_unpool(CudaKernels& list) {
  list.add_simple("MaxUnpool", run_max_unpool,
                  {.types = types::floats | TypeSet{ElementType::int64}, .host_inputs = {2}});
}

}  // namespace tenon::ops
