// Attention of many queries by groups of four warps that multiply together, on GPUs of compute capability 9.0.
#pragma once

#include "ops/attention/cuda_products.h"

namespace tenon::ops {

// float16 and bfloat16 without past keys; heads of up to 128 elements whose rows are read 16 bytes at a time.
bool takes_group_attention(KernelRun& run, const AttentionSizes& n);

// Whether a group of warps can have the scores of all keys at once.
bool has_one_tile(const AttentionSizes& n);

// As fused_attention, where there is one tile.
CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers);

// How a group of four warps works, which has 64 queries: keys at a time. Rows are in slabs of so many bytes of each.
struct GroupTile {
  int64_t keys, row_bytes, k_slabs, v_slabs;

  GroupTile(const AttentionSizes& n, int64_t tile_keys, int64_t row);
  // With room for the keys and values of so many tiles.
  int64_t shared_bytes(int64_t stages) const {
    return row_bytes * (k_slabs * 64 + stages * (k_slabs + v_slabs) * keys);
  }
  // `groups`: with those that fetch.
  cuda::Grid grid(const AttentionSizes& n, int64_t stages, int64_t groups) const;
  // What attention_text::groups_begin is written with.
  std::string text(KernelRun& run, const AttentionSizes& n, const std::vector<int64_t>& numbers, int64_t stages) const;
};

}  // namespace tenon::ops
