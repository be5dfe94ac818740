#include "ops/operator.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {

// For what a plan must know. In runs, frames copy themselves.
void cpu_copy(CpuKernels& list) {
  list.add_simple(
      "Copy", [](KernelRun& run) { run.set_output(0, run.value(0)); }, tenon_domain);
}

}  // namespace tenon::ops
