#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// At inference the output is the input itself.
void run_dropout(KernelRun& run) {
  const Tensor& x = run.input(0);
  if (run.wants_output(0)) queue_of(run).copy(run.output(0).mutable_raw(), x.raw(), x.bytes());
  if (run.wants_output(1)) {
    Tensor& mask = run.output(1);
    queue_of(run).fill(mask.mutable_raw(), 1, mask.bytes());
  }
}

std::string decline(const ir::Node& node) {
  const ir::Value* training = node.input(2);
  if (!training) return "";
  const bool is_off = training->is_fixed() && training->constant()->tensor.elements() == 1 &&
                      !training->constant()->tensor.data<bool>()[0];
  return is_off ? "" : "dropping in training is for the CPU";
}

}  // namespace

void cuda_dropout(CudaKernels& list) {
  list.add_simple("Dropout", run_dropout, {.types = cuda_movable, .host_inputs = {1, 2}, .decline = decline});
}

}  // namespace tenon::ops
