#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

Dim per_head(const Inference& i, size_t input, int64_t heads, const char* name) {
  const Dim& size = i.shape(input)[2];
  if (size.is_known() && size.value() % heads != 0)
    i.fail("axis 2 of {} has size {}, which cannot be divided among {} heads", name, size.value(), heads);
  return exact_div(size, heads);
}

// An update rule needs exactly the gates that it is named after.
void require_gate(const Inference& i, size_t input, const char* name, const std::string& rule, bool wanted) {
  if (i.has_input(input) == wanted) return;
  i.fail_with(wanted ? ErrorCode::missing_input : ErrorCode::invalid_model,
              fmt::format("update_rule '{}' {} {}", rule, wanted ? "needs" : "takes no", name));
}

void infer_linear_attention(Inference& i) {
  const std::string rule = i.node().string_attribute("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("update_rule is '{}'; it may be 'linear', 'gated', 'delta' or 'gated_delta'", rule));
  }
  require_gate(i, 4, "decay", rule, gated);
  require_gate(i, 5, "beta", rule, delta);
  const int64_t q_heads = i.node().int_attribute("q_num_heads", 0), heads = i.node().int_attribute("kv_num_heads", 0);
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("q_num_heads, {}, must be a positive multiple of kv_num_heads, {}", q_heads, heads));
  }
  for (size_t input : {0, 1, 2, 4, 5}) {
    if (i.has_input(input)) i.require_rank(input, 3);
  }
  if (i.has_input(3)) i.require_rank(3, 4);
  Dim batch = Dim::unknown(), length = Dim::unknown(), k_size = Dim::unknown(), v_size = Dim::unknown();
  constexpr const char* names[] = {"query", "key", "value", "past_state", "decay", "beta"};
  for (size_t input : {0, 1, 2, 4, 5}) {
    if (!i.has_shape(input)) continue;
    batch = i.equal(batch, i.shape(input)[0], fmt::format("the batches of query and {}", names[input]));
    length = i.equal(length, i.shape(input)[1], fmt::format("the lengths of query and {}", names[input]));
  }
  if (i.has_shape(0)) k_size = per_head(i, 0, q_heads, "query");
  if (i.has_shape(1)) k_size = i.equal(k_size, per_head(i, 1, heads, "key"), "the head sizes of query and key");
  if (i.has_shape(2)) v_size = per_head(i, 2, heads, "value");
  if (i.has_shape(3)) {
    const SymbolicShape& past = i.shape(3);
    batch = i.equal(batch, past[0], "the batches of query and past_state");
    i.equal(past[1], heads, "axis 1 of past_state and kv_num_heads");
    k_size = i.equal(k_size, past[2], "the head size of key and axis 2 of past_state");
    v_size = i.equal(v_size, past[3], "the head size of value and axis 3 of past_state");
  }
  if (i.has_shape(4) && !i.shape(4)[2].is(heads))
    i.equal(i.shape(4)[2], k_size * heads, "axis 2 of decay, unless it is kv_num_heads, and that of key");
  if (i.has_shape(5) && !i.shape(5)[2].is(1))
    i.equal(i.shape(5)[2], heads, "axis 2 of beta, unless it is 1, and kv_num_heads");
  i.output(0, i.element(0), SymbolicShape{batch, length, v_size * q_heads});
  i.output(1, i.element(i.has_input(3) ? 3 : 0), SymbolicShape{batch, heads, k_size, v_size});
}

// The state [batch, heads, key size, value size] goes through the steps one by one. In each, keys are columns of it,
// values are rows, and the queries that share a head are the rows of a matrix.
void decompose_linear_attention(Decomposition& d) {
  const int64_t q_heads = d.node().int_attribute("q_num_heads", 1),
                kv_heads = d.node().int_attribute("kv_num_heads", 1);
  Term heads = d.ints({kv_heads}), group = d.ints({q_heads / kv_heads}), one = d.ints({1});
  auto size_per_head = [&](size_t i) { return size_of(d.input(i), 2) / heads; };
  auto by_head = [&](size_t i, Term rows, Term columns) {
    Term x = d.wide_input(i);
    return reshape(x, concat({size_of(x, 0), size_of(x, 1), heads, rows, columns}));
  };
  Term k_size = size_per_head(1), v_size = size_per_head(2);
  Term query = by_head(0, group, k_size), key = by_head(1, k_size, one), value = by_head(2, one, v_size);
  Term batch = size_of(query, 0), state_shape = concat({batch, heads, k_size, v_size});
  Term state = d.has_input(3) ? reshape(d.wide_input(3), state_shape) : expand(key.number(0), state_shape);

  std::vector<Term> sequences{query, key, value};
  const bool gated = d.has_input(4), delta = d.has_input(5);
  if (gated) sequences.push_back(exp(by_head(4, size_per_head(4), one)));
  if (delta) sequences.push_back(unsqueeze(d.wide_input(5), {3, 4}));
  auto step = [&](Term before, const std::vector<Term>& now) -> Decomposition::Step {
    Term kept = gated ? before * now[3] : before, added = now[2];
    if (delta) added = (added - d.add("MatMul", {transpose(now[1], {0, 1, 3, 2}), kept})) * now.back();
    Term after = kept + now[1] * added;
    return {after, d.add("MatMul", {now[0], after})};
  };
  auto [last, results] = d.scan(state, sequences, /*axis=*/1, step);
  const float scale = d.node().float_attribute("scale", 0);
  Term y = results * (scale != 0 ? results.number(scale) : 1 / sqrt(cast(k_size, results.type)));
  d.output(0, reshape(y, concat({batch, size_of(query, 1), d.ints({q_heads}) * v_size})));
  d.output(1, last);
}

}  // namespace

void define_linear_attention(OperatorList& list) {
  constexpr TypeSet allowed = types::floats - TypeSet{ElementType::float64};
  list.add("LinearAttention", {27})
      .input("query", "T")
      .input("key", "T")
      .input("value", "T")
      .optional_input("past_state", "S")
      .optional_input("decay", "T")
      .optional_input("beta", "T")
      .output("output", "T")
      .output("present_state", "S")
      .types("T", allowed)
      .types("S", allowed)
      .attribute("chunk_size", AttributeKind::int_)
      .required_attribute("kv_num_heads", AttributeKind::int_)
      .required_attribute("q_num_heads", AttributeKind::int_)
      .attribute("scale", AttributeKind::float_)
      .attribute("update_rule", AttributeKind::string)
      .infer(infer_linear_attention)
      .decompose(decompose_linear_attention);
}

}  // namespace tenon::ops
