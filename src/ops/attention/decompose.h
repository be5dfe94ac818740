#pragma once

#include "ops/decomposition.h"

namespace tenon::ops {

// Input i, which is [batch, sequence, heads * size] or [batch, heads, sequence, size], as
// [batch, 1, sequence, heads, size] or [batch, heads, sequence, 1, size]. The number of heads is needed for the first.
Term split_heads(Decomposition& d, size_t i, int64_t heads);

// Each head of x, which is [batch, heads, …], as often as query heads share it. `query_heads` is a list of one.
Term repeat_heads(Term x, Term query_heads);

}  // namespace tenon::ops
