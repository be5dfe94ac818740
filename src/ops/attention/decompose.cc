#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/decomposition.h"

namespace tenon::ops {
namespace {

constexpr double masked = -std::numeric_limits<double>::infinity();

// Q, K or V as [batch, heads, sequence, size].
Term with_heads(Decomposition& d, size_t i, const char* heads_attribute) {
  Term x = d.input(i);
  if (d.rank(i) == 4) return x;
  Term heads = d.ints({d.node().int_attribute(heads_attribute, 1)});
  return transpose(reshape(x, concat({size_of(x, 0), size_of(x, 1), heads, size_of(x, 2) / heads})), {0, 2, 1, 3});
}

// Each head of K or V as often as query heads share it.
Term repeat_heads(Decomposition& d, Term x, Term query_heads) {
  bool flat = d.rank(0) == 3;
  int64_t q = flat ? d.node().int_attribute("q_num_heads", 1) : d.known_size(0, 1);
  int64_t kv = flat ? d.node().int_attribute("kv_num_heads", 1) : d.known_size(1, 1);
  if (q >= 0 && q == kv) return x;
  Term heads = size_of(x, 1), batch = size_of(x, 0), rows = shape_of(x, 2);
  Term repeated = expand(unsqueeze(x, {2}), concat({batch, heads, query_heads / heads, rows}));
  return reshape(repeated, concat({batch, query_heads, rows}));
}

// attn_mask as an addend. Keys past its end are masked, but one key stands for all.
Term addend(Decomposition& d, Term mask, Term keys, ElementType type) {
  if (mask.type == ElementType::boolean)
    mask = where(mask, d.number(0, type), d.number(masked, type));
  else
    mask = cast(mask, type);
  Term own = size_of(mask, -1), zero = d.ints({0});
  Term missing = where(equal(own, 1), zero, keys - own);
  return d.add("Pad", {mask, concat({zero, missing}), mask.number(masked), d.ints({-1})});
}

// Which of [batch, 1, queries, keys] the causal rule, the windows and the lengths let be seen; nothing if they do not
// hide any. Queries are the last of the keys that count, in the order of both.
Term visible(Decomposition& d, Term queries, Term keys, Term past) {
  constexpr int64_t longest = int64_t{1} << 48;  // windows of more than any memory holds need no exact size
  int64_t left = std::min(d.node().int_attribute("left_window_size", -1), longest);
  int64_t right = std::min(d.node().int_attribute("right_window_size", -1), longest);
  if (left < -1 || right < -1) d.give_up("a window size is less than -1");
  if (d.node().int_attribute("is_causal", 0) != 0) right = 0;
  Term result, key = d.indices(keys), lengths;
  auto also = [&](Term rule) { result = result ? both(result, rule) : rule; };
  if (d.has_input(6)) lengths = unsqueeze(d.input(6), {1, 2, 3});
  if (left >= 0 || right >= 0) {
    Term query = unsqueeze(d.indices(queries), {1}) + (lengths ? lengths - queries : past);
    if (right >= 0) also(less(key, query + d.ints({right + 1})));
    if (left >= 0) also(greater(key, query - d.ints({left + 1})));
  }
  if (lengths) also(less(key, lengths));
  return result;
}

}  // namespace

void decompose_attention(Decomposition& d) {
  const ir::Node& node = d.node();
  const bool flat = d.rank(0) == 3;
  const int64_t mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) d.give_up("qk_matmul_output_mode is not 0 to 3");
  const ElementType type = wide(d.element(0));

  Term q = cast(with_heads(d, 0, "q_num_heads"), type);
  Term k = with_heads(d, 1, "kv_num_heads"), v = with_heads(d, 2, "kv_num_heads"), past = d.ints({0});
  if (d.has_input(4)) {
    past = size_of(d.input(4), 2);
    k = concat({d.input(4), k}, 2);
    v = concat({d.input(5), v}, 2);
  }
  d.output(1, k);
  d.output(2, v);
  Term heads = size_of(q, 1), queries = size_of(q, 2), keys = size_of(k, 2);
  k = cast(repeat_heads(d, k, heads), type);
  v = cast(repeat_heads(d, v, heads), type);

  Term scale =
      node.attribute("scale") ? q.number(node.float_attribute("scale", 1)) : 1 / sqrt(cast(size_of(q, 3), type));
  std::vector<Term> stages{d.add("MatMul", {q, transpose(k, {0, 1, 3, 2})}) * scale};
  Term scores = stages[0];
  if (float cap = node.float_attribute("softcap", 0); cap > 0) scores = tanh(scores / cap) * cap;
  stages.push_back(scores);
  Term seen = visible(d, queries, keys, past);
  if (d.has_input(3)) scores = scores + addend(d, d.input(3), keys, type);
  if (seen) scores = where(seen, scores, masked);
  stages.push_back(scores);
  Term weights = d.add("Softmax", {scores}, {{"axis", -1}});
  // A query that sees no key gets zeros.
  if (seen || d.has_input(3)) weights = where(equal(reduce("ReduceMax", scores, d.ints({-1})), masked), 0, weights);
  stages.push_back(weights);
  d.output(3, stages[static_cast<size_t>(mode)]);

  Term y = d.add("MatMul", {weights, v});
  if (flat) y = reshape(transpose(y, {0, 2, 1, 3}), concat({size_of(q, 0), queries, heads * size_of(v, 3)}));
  d.output(0, y);
}

}  // namespace tenon::ops
