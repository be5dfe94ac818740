// Attention of many queries by tensor cores in one kernel: scores never leave the registers.
#pragma once

#include "ops/attention/cuda_products.h"

namespace tenon::ops {

// float16 and bfloat16, heads of at most 256 elements.
bool takes_fused_attention(KernelRun& run, const AttentionSizes& n);

// `functions` and `numbers` are those of attention_text::common, `pointers` those of its kernels.
CudaBlocks fused_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers);

}  // namespace tenon::ops
