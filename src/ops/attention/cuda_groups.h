// Attention of many queries by groups of four warps that multiply together, on GPUs of compute capability 9.0.
#pragma once

#include <algorithm>

#include "ops/attention/cuda_products.h"

namespace tenon::ops {

// float16 and bfloat16, heads of up to 128 elements; if it may be rounded to TF32, float32, up to 64 elements and keys
// that are one tile. No past keys, and rows that are read 16 bytes at a time.
bool takes_group_attention(KernelRun& run, const AttentionSizes& n, bool allow_tf32);

// Whether a group of warps can have the scores of all keys at once.
bool has_one_tile(const AttentionSizes& n);

// As fused_attention, where there is one tile.
CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers);

// How a block works: groups of four warps, each of which has 64 queries, and in as many turns the next ones. Values may
// take the place of the keys where these are read once.
struct GroupWork {
  int64_t groups = 1, turns = 1;
  bool values_replace_keys = false;
};

// What it works on: so many keys at a time. Rows are in slabs of so many bytes of each. Sums are as many columns at a
// time, in as many parts.
struct GroupTile {
  bool is_float;
  int64_t keys, row_bytes;
  GroupWork work;
  int64_t k_slabs, v_parts, v_part, k_steps, k_bytes, v_bytes;

  GroupTile(const AttentionSizes& n, ElementType type, int64_t tile_keys, int64_t row,
            const GroupWork& block_work = {});
  // With room for the keys and values of so many tiles, and for the next queries.
  int64_t shared_bytes(int64_t stages) const {
    const int64_t queries = work.groups * row_bytes * k_slabs * 64 * (work.turns > 1 ? 2 : 1);
    return queries + (work.values_replace_keys ? std::max(k_bytes, v_bytes) : stages * (k_bytes + v_bytes));
  }
  int64_t block_queries() const { return work.groups * work.turns * 64; }
  // `others`: groups that fetch.
  cuda::Grid grid(const AttentionSizes& n, int64_t stages, int64_t others) const;
  // What attention_text::group_functions are written with.
  std::string text(KernelRun& run, const AttentionSizes& n, const std::vector<int64_t>& numbers, int64_t stages) const;
};

}  // namespace tenon::ops
