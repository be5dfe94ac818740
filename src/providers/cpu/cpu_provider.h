#pragma once

#include "provider/cpu_kernels.h"
#include "provider/provider.h"

namespace tenon {

// Runs every operator that has a CPU kernel.
class CpuProvider final : public Provider {
 public:
  std::string_view name() const override { return "cpu"; }
  Claim claim(const ir::Node& node) const override;
  std::unique_ptr<Kernel> compile(const NodeInfo& info) const override;
};

// All kernels of src/ops, made on first use.
const CpuKernels& cpu_kernels();

}  // namespace tenon
