#include "ops/cuda_support/kernels.h"

namespace tenon::ops {

#define FOLDER(name) void cuda_##name(CudaKernels&);
#include "ops/cuda_folders.def"
#undef FOLDER

namespace {

class SimpleKernel final : public Kernel {
 public:
  explicit SimpleKernel(void (*run)(KernelRun&)) : run_(run) {}
  void run(KernelRun& run) const override { run_(run); }

 private:
  void (*run_)(KernelRun&);
};

std::string key_of(std::string_view domain, std::string_view op) { return std::string(domain) + ":" + std::string(op); }

}  // namespace

void CudaKernels::add(std::string_view op, Make make, CudaKernelOptions options) {
  const std::string key = key_of(options.domain, op);
  entries_[key] = {std::move(make), std::move(options)};
}

void CudaKernels::add_simple(std::string_view op, void (*run)(KernelRun&), CudaKernelOptions options) {
  add(
      op, [run](const NodeInfo&) { return std::make_unique<SimpleKernel>(run); }, std::move(options));
}

const CudaKernels::Entry* CudaKernels::find(std::string_view domain, std::string_view op) const {
  auto found = entries_.find(key_of(domain, op));
  return found == entries_.end() ? nullptr : &found->second;
}

const CudaKernels& cuda_kernels() {
  static const CudaKernels kernels = [] {
    CudaKernels all;
#define FOLDER(name) cuda_##name(all);
#include "ops/cuda_folders.def"
#undef FOLDER
    return all;
  }();
  return kernels;
}

}  // namespace tenon::ops
