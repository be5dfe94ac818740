// What CUDA kernels of operators are written with.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/gpu.h"
#include "cuda/kernel_text.h"
#include "cuda/trial.h"
#include "ops/operator.h"
#include "provider/kernel.h"

namespace tenon::ops {

// What a CUDA kernel runs, and how.
struct CudaKernelOptions {
  TypeSet types = {};                    // element types that inputs and outputs may have; empty: all that have a size
  std::vector<size_t> host_inputs = {};  // inputs that it reads on the host, such as the axes of a reduction
  // Says no, with a reason, to nodes that it does not run.
  std::function<std::string(const ir::Node&)> decline = nullptr;
  std::string_view domain = "";
  int least_major = 0;  // of the GPU's compute capability
};

// The CUDA kernels by operator. A folder in src/ops adds its own in cuda.cc, and a line to cuda_folders.def:
//
//   kernels.add("Softmax", [](const NodeInfo& n) { return std::make_unique<Softmax>(n); }, {.types = types::floats});
class CudaKernels {
 public:
  using Make = std::function<std::unique_ptr<Kernel>(const NodeInfo&)>;

  struct Entry {
    Make make;
    CudaKernelOptions options;
  };
  void add(std::string_view op, Make make, CudaKernelOptions options = {});
  // A kernel without state.
  void add_simple(std::string_view op, void (*run)(KernelRun&), CudaKernelOptions options = {});
  const Entry* find(std::string_view domain, std::string_view op) const;

 private:
  std::unordered_map<std::string, Entry> entries_;
};

// All of them.
const CudaKernels& cuda_kernels();

// The queue that the kernel's work goes to.
inline cuda::GpuQueue& queue_of(KernelRun& run) { return static_cast<cuda::GpuQueue&>(run.allocator()); }

// Of what the kernel chooses.
inline cuda::Uses uses_of(const KernelRun& run) {
  return run.keeps_plan() ? cuda::Uses::in_many_runs : cuda::Uses::in_one_run;
}

}  // namespace tenon::ops
