#include "providers/cuda/cuda_provider.h"

#include <algorithm>

#include "base/fail.h"
#include "ir/visit.h"
#include "ops/cuda_support/kernels.h"
#include "ops/operator.h"

namespace tenon {
namespace {

// Strings, sequences, maps and optionals live on the host.
std::string why_not_on_device(const ir::Node& node) {
  for (std::span<ir::Value* const> values : {node.inputs(), node.outputs()}) {
    for (const ir::Value* value : values) {
      if (!value) continue;
      if (!value->type.is_tensor())
        return fmt::format("'{}' is {}, which only the CPU holds", value->name, value->type.name());
      if (value->type.element == ElementType::string)
        return fmt::format("'{}' holds text, which only the CPU does", value->name);
    }
  }
  return "";
}

const ops::CudaKernels::Entry* find(const ir::Node& node) {
  return node.custom_operator ? nullptr : ops::cuda_kernels().find(node.domain, node.op_type);
}

}  // namespace

CudaProvider::CudaProvider(int ordinal) : gpu_(cuda::Gpu::open(ordinal)) {}

Claim CudaProvider::claim(const ir::Node& node) const {
  const ops::CudaKernels::Entry* entry = find(node);
  if (!entry) {
    if (ir::has_subgraphs(node))
      return Claim::no("control flow is decided on the host; what is in it may run on the GPU");
    if (node.custom_operator) return Claim::no("custom operators run on the CPU");
    return Claim::no(fmt::format("there is no CUDA kernel for {}", node.op_type));
  }
  if (std::string reason = why_not_on_device(node); !reason.empty()) return Claim::no(std::move(reason));
  if (gpu_->major() < entry->options.least_major)
    return Claim::no(fmt::format("the CUDA kernel of {} needs compute capability {}.0; this GPU has {}.{}",
                                 node.op_type, entry->options.least_major, gpu_->major(), gpu_->minor()));
  if (!entry->options.types.empty()) {
    for (size_t i = 0; i < node.input_count() + node.output_count(); ++i) {
      const bool is_input = i < node.input_count();
      const ir::Value* value = is_input ? node.input(i) : node.output(i - node.input_count());
      if (!value || entry->options.types.contains(value->type.element)) continue;
      if (is_input && std::ranges::find(entry->options.host_inputs, i) != entry->options.host_inputs.end()) continue;
      return Claim::no(
          fmt::format("the CUDA kernel of {} does not take {}", node.op_type, name_of(value->type.element)));
    }
  }
  if (entry->options.decline) {
    if (std::string reason = entry->options.decline(node); !reason.empty()) return Claim::no(std::move(reason));
  }
  return Claim::yes(node.op_type);
}

bool CudaProvider::reads_on_host(const ir::Node& node, size_t input) const {
  const ops::CudaKernels::Entry* entry = find(node);
  TENON_CHECK(entry);
  return std::ranges::find(entry->options.host_inputs, input) != entry->options.host_inputs.end();
}

bool CudaProvider::wants_decomposed(const ir::Node& node) const {
  return !ir::has_subgraphs(node) && !node.custom_operator && why_not_on_device(node).empty();
}

std::unique_ptr<Kernel> CudaProvider::compile(const NodeInfo& info) const {
  const ops::CudaKernels::Entry* entry = find(info.node());
  TENON_CHECK(entry);
  return entry->make(info);
}

}  // namespace tenon
