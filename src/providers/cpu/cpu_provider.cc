#include "providers/cpu/cpu_provider.h"

#include "base/fail.h"

namespace tenon {

namespace ops {
#define FOLDER(name) void cpu_##name(CpuKernels&);
#include "ops/folders.def"
#undef FOLDER
}  // namespace ops

const CpuKernels& cpu_kernels() {
  static const CpuKernels kernels = [] {
    CpuKernels all;
#define FOLDER(name) ops::cpu_##name(all);
#include "ops/folders.def"
#undef FOLDER
    return all;
  }();
  return kernels;
}

Claim CpuProvider::claim(const ir::Node& node) const {
  const CpuKernels::Entry* entry = cpu_kernels().find(node.domain, node.op_type);
  if (!entry) return Claim::no(fmt::format("there is no CPU kernel for {}", node.op_type));
  if (entry->decline) {
    if (std::string reason = entry->decline(node); !reason.empty()) return Claim::no(reason);
  }
  return Claim::yes(node.op_type);
}

std::unique_ptr<Kernel> CpuProvider::compile(const NodeInfo& info) const {
  const CpuKernels::Entry* entry = cpu_kernels().find(info.node().domain, info.node().op_type);
  TENON_CHECK(entry);
  return entry->make(info);
}

}  // namespace tenon
