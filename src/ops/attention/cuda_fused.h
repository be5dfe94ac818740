// Attention of many queries by tensor cores in one kernel: scores never leave the registers.
#pragma once

#include "ops/attention/cuda_products.h"

namespace tenon::ops {

// float16, bfloat16 and, if it may be rounded to TF32, float32; heads whose rows fit into shared memory.
bool takes_fused_attention(KernelRun& run, const AttentionSizes& n, bool allow_tf32);

// `functions` and `numbers` are those of attention_text::common, `pointers` those of its kernels.
CudaBlocks fused_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers);

}  // namespace tenon::ops
