// Attention of one head.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

// Rows that start `step` floats apart.
struct AttentionRows {
  const float* data;
  int64_t step;
};

// Those of keys [first_key, last_key) and queries [first_query, last_query).
struct AttentionScores {
  int64_t first_key, last_key;
  int64_t first_query, last_query;
  float* data;
  int64_t step;

  // Of this key: one for each query.
  float* row(int64_t key) const { return data + (key - first_key) * step; }
};

// out = softmax(change(scale * queries * keys^T)) * values. A query that sees no key gets zeros.
struct AttentionHead {
  // A score of -infinity hides the key from the query.
  using ChangeScores = FunctionRef<void(const AttentionScores&)>;

  int64_t query_count, key_count;
  int64_t k_size, v_size;  // floats of a query and of a key; floats of a value
  AttentionRows queries, keys, values;
  float* out;
  int64_t out_step;
  float scale;
  ChangeScores change;
};

// In the calling thread. Some keys at a time: the sums are kept relative to the highest score so far, so memory does
// not grow with the number of keys. A query's result does not depend on which others are computed with it.
void attention(const AttentionHead& head);

// The instruction set attention uses now.
Isa attention_isa();

// Columns of scores, each the keys of one query. Rows are `step` floats apart; the number of queries is a multiple of
// `width`, that of a vector.
struct AttentionKernels {
  Isa isa;
  int width;
  int columns_at_once;  // best so many, or a multiple
  // highest[i] = the highest of highest[i] and column i.
  void (*find_highest)(const float* scores, int64_t keys, int64_t step, int64_t queries, float* highest);
  // Scores become exp(score - highest[i]), or 0 where highest[i] is -infinity, and sums[i] grows by those of its
  // column.
  void (*to_weights)(float* scores, int64_t keys, int64_t step, int64_t queries, const float* highest, float* sums);
};

TENON_WIDE_ISA_TABLES(AttentionKernels, attention_kernels)

}  // namespace tenon::kernels
