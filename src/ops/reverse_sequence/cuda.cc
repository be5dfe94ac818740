#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// A length that is not 0 to the number of steps counts as the nearest that is.
void run_reverse_sequence(KernelRun& run) {
  const Tensor &x = run.input(0), &lengths = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const bool time_first = run.node().int_attribute("time_axis", 0) == 0;
    const int64_t bytes = x.shape().elements(2, x.rank()) * bits_of(x.type()) / 8,
                  unit = unit_for(bytes, {x.raw(), y.raw()});
    const int64_t count = x.bytes() / unit;
    const std::string body = fmt::format(
        "typedef {} I; const I column = (I)i % (I)v[0], row = (I)i / (I)v[0];\n    "
        "const i64 t = {}, b = {}, length = lengths[b] > v[1] ? v[1] : lengths[b], from = t < length ? length - 1 - t "
        ": t;\n    "
        "y[i] = x[({}) * v[0] + column];",
        index_text(count), time_first ? "row / (I)v[2]" : "row % (I)v[1]",
        time_first ? "row % (I)v[2]" : "row / (I)v[1]", time_first ? "from * v[2] + b" : "b * v[1] + from");
    return CudaLoop(run, count, fmt::format("const {0}* x, {0}* y, const i64* lengths", unit_text(unit)), body,
                    {bytes / unit, x.dim(time_first ? 0 : 1), x.dim(time_first ? 1 : 0)});
  });
  loop.run(run, {x.raw(), y.raw(), lengths.raw()});
}

}  // namespace

void cuda_reverse_sequence(CudaKernels& list) {
  list.add_simple("ReverseSequence", run_reverse_sequence, {.types = cuda_movable});
}

}  // namespace tenon::ops
