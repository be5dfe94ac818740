#include "providers/cpu/cpu_provider.h"

#include "base/fail.h"
#include "ops/operator.h"

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
  if (node.custom_operator) return Claim::yes(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
  const CpuKernels::Entry* entry = cpu_kernels().find(node.domain, node.op_type);
  if (!entry) return Claim::no(fmt::format("there is no CPU kernel for {}", node.op_type));
  if (entry->decline) {
    if (std::string reason = entry->decline(node); !reason.empty()) return Claim::no(reason);
  }
  return Claim::yes(node.op_type);
}

std::unique_ptr<Kernel> CpuProvider::compile(const NodeInfo& info) const {
  if (const auto& custom = info.node().custom_operator) return custom->make_cpu_kernel(info);
  const CpuKernels::Entry* entry = cpu_kernels().find(info.node().domain, info.node().op_type);
  TENON_CHECK(entry);
  return entry->make(info);
}

}  // namespace tenon
