// Attention of many queries as two products of matrices, with all scores in memory between them.
#pragma once

#include <optional>

#include "cuda/gemm.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {

// Of Attention, or of PackedAttention, whose queries, keys and values are parts of the rows of one tensor.
struct AttentionSizes {
  bool packed, flat;  // flat: heads are parts of rows
  int64_t batch, q_heads, kv_heads, queries, fresh, past, keys, k_size, v_size;

  explicit AttentionSizes(const KernelRun& run);

  // From batch to batch, head to head and row to row.
  std::vector<int64_t> q_steps() const { return steps(q_heads, queries, k_size, packed ? 3 : 1); }
  std::vector<int64_t> k_steps() const { return steps(kv_heads, fresh, k_size, packed ? 3 : 1); }
  std::vector<int64_t> v_steps() const { return steps(kv_heads, fresh, v_size, packed ? 3 : 1); }
  std::vector<int64_t> y_steps() const { return steps(q_heads, queries, v_size, 1); }
  int64_t all_queries() const { return batch * q_heads * queries; }

  // Queries, keys or values: the tensor that they are in, and where they begin.
  const Tensor& tensor(const KernelRun& run, size_t i) const { return run.input(packed ? 0 : i); }
  const void* address(const KernelRun& run, size_t i) const;
  // The input that is the mask.
  size_t mask() const { return packed ? 1 : 3; }

 private:
  std::vector<int64_t> steps(int64_t heads, int64_t length, int64_t size, int64_t parts) const;
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

  AttentionSizes sizes_;
  int64_t bytes_each_, queries_each_;
  std::optional<CudaStridedCopy> query_copy_, output_copy_;  // for rows that have several heads
  std::shared_ptr<void> queries_, outputs_, scores_, weights_;
  std::vector<Part> parts_;
};

}  // namespace tenon::ops
