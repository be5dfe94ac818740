#pragma once

#include "cuda/gpu.h"
#include "provider/provider.h"

namespace tenon {

// Runs nodes on one NVIDIA GPU.
class CudaProvider final : public Provider {
 public:
  // Throws ErrorCode::provider_unavailable with what is missing.
  explicit CudaProvider(int ordinal = 0);

  std::string_view name() const override { return gpu_->memory_name(); }
  std::string_view memory() const override { return gpu_->memory_name(); }
  Device* device() const override { return gpu_.get(); }
  Claim claim(const ir::Node& node) const override;
  bool reads_on_host(const ir::Node& node, size_t input) const override;
  bool wants_decomposed(const ir::Node& node) const override;
  std::unique_ptr<Kernel> compile(const NodeInfo& info) const override;

 private:
  std::shared_ptr<cuda::Gpu> gpu_;
};

}  // namespace tenon
