#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/decompose.h"
#include "ops/known_attributes.h"

namespace tenon::ops {

Term split_heads(Decomposition& d, size_t i, int64_t heads) {
  Term x = d.input(i);
  if (d.known_rank(i) == 4) return unsqueeze(x, {3});
  if (d.known_rank(i) == 3 && heads < 1) d.give_up("the number of heads is not given");
  Term batch = size_of(x, 0), sequence_or_heads = size_of(x, 1), last = size_of(x, -1), one = d.ints({1});
  Term shape;
  if (heads > 0) {
    Term count = d.ints({heads});
    shape = concat({batch, one, sequence_or_heads, count, last / count});
  }
  if (d.known_rank(i) != 3) {
    Term own_axis = concat({batch, sequence_or_heads, size_of(x, 2), one, last});
    shape = shape ? where(equal(shape_of(shape_of(x)), d.ints({3})), shape, own_axis) : own_axis;
  }
  return reshape(x, shape);
}

Term repeat_heads(Term x, Term query_heads) {
  Term heads = size_of(x, 1), batch = size_of(x, 0), rows = shape_of(x, 2);
  Term repeated = expand(unsqueeze(x, {2}), concat({batch, heads, query_heads / heads, rows}));
  return reshape(repeated, concat({batch, query_heads, rows}));
}

namespace {

constexpr double masked = -std::numeric_limits<double>::infinity();

// Q, K or V as [batch, heads, sequence, size].
Term with_heads(Decomposition& d, size_t i, int64_t heads) {
  if (d.known_rank(i) == 4) return d.input(i);
  Term x = transpose(split_heads(d, i, heads), {0, 1, 3, 2, 4});
  return reshape(x, concat({size_of(x, 0), size_of(x, 1) * size_of(x, 2), shape_of(x, 3)}));
}

// [batch, heads, sequence, size] in the layout of Q.
Term as_query(Decomposition& d, Term x, int64_t heads) {
  if (d.known_rank(0) == 4) return x;
  Term q = d.input(0), split = split_heads(d, 0, heads), inner = size_of(split, 3);
  Term apart = concat({size_of(q, 0), size_of(split, 1), inner, shape_of(x, 2)});
  return reshape(transpose(reshape(x, apart), {0, 1, 3, 2, 4}), concat({outer_shape_of(q), inner * size_of(x, 3)}));
}

// Whether the mask certainly is for all keys: it has as many, or one that stands for all.
bool mask_has_all_keys(const Decomposition& d) {
  const std::optional<SymbolicShape>&mask = d.node().input(3)->type.shape, &k = d.node().input(1)->type.shape;
  if (!mask || mask->empty()) return false;
  if (mask->back() == Dim(1)) return true;
  return !d.has_input(4) && k && k->size() >= 3 && mask->back() == (*k)[k->size() - 2];
}

// attn_mask as an addend. Keys past its end are masked, but one key stands for all.
Term addend(Decomposition& d, Term mask, Term keys, ElementType type) {
  if (mask.type == ElementType::boolean)
    mask = where(mask, d.number(0, type), d.number(masked, type));
  else
    mask = cast(mask, type);
  if (mask_has_all_keys(d)) return mask;
  Term own = size_of(mask, -1), zero = d.ints({0});
  Term missing = where(equal(own, 1), zero, keys - own);
  if (const int rank = d.known_rank(3); rank > 0) {
    // Pads of all axes are understood by older opsets too.
    Term others = d.ints(std::vector<int64_t>(static_cast<size_t>(2 * rank - 1), 0));
    return d.add("Pad", {mask, concat({others, missing}), mask.number(masked)});
  }
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
  const int64_t q_heads = node.int_attribute("q_num_heads", 0), kv_heads = node.int_attribute("kv_num_heads", 0);
  const int64_t mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) d.give_up("qk_matmul_output_mode is not 0 to 3");
  const ElementType type = wide(d.element(0));

  Term q = cast(with_heads(d, 0, q_heads), type);
  Term k = with_heads(d, 1, kv_heads), v = with_heads(d, 2, kv_heads), past = d.ints({0});
  if (d.has_input(4)) {
    past = size_of(d.input(4), 2);
    k = concat({d.input(4), k}, 2);
    v = concat({d.input(5), v}, 2);
  }
  d.output(1, k);
  d.output(2, v);
  Term heads = size_of(q, 1), queries = size_of(q, 2), keys = size_of(k, 2);
  const bool own_axis = d.known_rank(0) == 4, flat = d.known_rank(0) == 3;
  const bool same_heads = (flat && q_heads == kv_heads) ||
                          (own_axis && d.known_size(0, 1) >= 0 && d.known_size(0, 1) == d.known_size(1, 1));
  k = cast(same_heads ? k : repeat_heads(k, heads), type);
  v = cast(same_heads ? v : repeat_heads(v, heads), type);

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

  d.output(0, as_query(d, d.add("MatMul", {weights, v}), q_heads));
}

void decompose_packed_attention(Decomposition& d) {
  ir::Node& split = d.add_node("Split", {d.node().input(0)});
  split.set_attribute({"axis", int64_t{-1}});
  split.set_attribute({"num_outputs", int64_t{3}});
  std::vector<ir::Value*> inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(d.add_output(split));
  if (d.has_input(1)) inputs.push_back(d.node().input(1));
  ir::Node& attention = d.add_node("Attention", inputs);
  copy_known_attributes(d.node(), attention);
  for (const char* heads : {"q_num_heads", "kv_num_heads"})
    attention.set_attribute({heads, d.node().int_attribute("num_heads", 1)});
  d.output(0, d.add_output(attention));
}

}  // namespace tenon::ops
