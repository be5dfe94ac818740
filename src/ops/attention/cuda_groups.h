// Attention of many queries by groups of four warps that multiply together, on GPUs of compute capability 9.0.
#pragma once

#include "ops/attention/cuda_products.h"

namespace tenon::ops {

// float16 and bfloat16 without past keys; heads of up to 128 elements whose rows are read 16 bytes at a time.
bool takes_group_attention(KernelRun& run, const AttentionSizes& n);

// As fused_attention.
CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers);

}  // namespace tenon::ops
