#include "provider/cpu_kernels.h"

namespace tenon::ops {

void cpu_identity(CpuKernels& list) {
  list.add_simple("Identity", [](KernelRun& run) { run.set_output(0, run.value(0)); });
}

}  // namespace tenon::ops
