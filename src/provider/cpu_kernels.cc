#include "provider/cpu_kernels.h"

#include "base/fail.h"

namespace tenon {
namespace {

std::string key(std::string_view domain, std::string_view op) { return std::string(domain) + ":" + std::string(op); }

class SimpleKernel final : public Kernel {
 public:
  explicit SimpleKernel(void (*run)(KernelRun&)) : run_(run) {}
  void run(KernelRun& run) const override { run_(run); }

 private:
  void (*run_)(KernelRun&);
};

}  // namespace

void CpuKernels::add(std::string_view op, Make make, Decline decline, std::string_view domain) {
  bool added = entries_.emplace(key(domain, op), Entry{std::move(make), std::move(decline)}).second;
  TENON_CHECK(added);
}

void CpuKernels::add_simple(std::string_view op, void (*run)(KernelRun&), std::string_view domain) {
  add(
      op, [run](const NodeInfo&) { return std::make_unique<SimpleKernel>(run); }, nullptr, domain);
}

const CpuKernels::Entry* CpuKernels::find(std::string_view domain, std::string_view op) const {
  auto found = entries_.find(key(domain, op));
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace tenon
