#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// Mostly the output is a view of the input. Where it is not, it is a copy.
void run_reshape(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.raw() != x.raw()) queue_of(run).copy(y.mutable_raw(), x.raw(), x.bytes());
}

}  // namespace

void cuda_reshape(CudaKernels& list) {
  for (const char* op : {"Reshape", "Squeeze", "Unsqueeze"}) list.add_simple(op, run_reshape, {.host_inputs = {1}});
  list.add_simple("Flatten", run_reshape);
}

}  // namespace tenon::ops
