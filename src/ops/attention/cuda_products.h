// Attention of many queries as two products of matrices, with all scores in memory between them.
#pragma once

#include <optional>

#include "cuda/gemm.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {

struct AttentionSizes {
  bool flat;  // heads are parts of rows
  int64_t batch, q_heads, kv_heads, queries, fresh, past, keys, k_size, v_size;

  explicit AttentionSizes(const KernelRun& run);

  // From batch to batch, head to head and row to row of a tensor of the node.
  std::vector<int64_t> steps(int64_t heads, int64_t length, int64_t size) const;
  int64_t all_queries() const { return batch * q_heads * queries; }
};

class AttentionProducts {
 public:
  static bool takes(const AttentionSizes& n, const KernelRun& run);

  // `functions` and `numbers` are those of attention_text::common.
  AttentionProducts(KernelRun& run, const AttentionSizes& n, double scale, const std::string& functions,
                    const std::vector<int64_t>& numbers, bool allow_tf32);

  // Of keys and values [batch, heads, sequence, size].
  void run(KernelRun& run, const void* keys, const void* values, Tensor& y) const;

 private:
  // Heads of keys that are worked on at once, with all queries that read them.
  struct Part {
    int64_t first;
    cuda::Gemm scores, sums;
    CudaBlocks softmax;
  };

  int64_t bytes_each_, queries_each_, k_size_, v_size_, keys_;
  std::optional<CudaStridedCopy> query_copy_, output_copy_;  // for rows that have several heads
  std::shared_ptr<void> queries_, outputs_, scores_, weights_;
  std::vector<Part> parts_;
};

}  // namespace tenon::ops
