// Attention over many keys by groups of four warps, on GPUs of compute capability 9.0: the copy engine fetches keys and
// values ahead, and a group has the scores of the next keys computed while it works on these.
#pragma once

#include "ops/attention/cuda_groups.h"

namespace tenon::ops {

class LongAttention {
 public:
  // Where takes_group_attention. `functions`, `numbers` and `pointers` are those of fused_attention.
  LongAttention(KernelRun& run, const AttentionSizes& n, std::string_view pointers, const std::string& functions,
                const std::vector<int64_t>& numbers);
  void run(KernelRun& run, std::initializer_list<const void*> addresses) const;

 private:
  AttentionSizes sizes_;
  GroupTile tile_;
  CudaBlocks blocks_;
};

}  // namespace tenon::ops
