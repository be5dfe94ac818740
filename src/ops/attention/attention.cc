#include "ops/cost.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

Dim divided(const Inference& i, const Dim& size, int64_t heads, const char* name) {
  if (heads < 1)
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("{} must be given, and at least 1, for inputs of rank 3", name));
  if (size.is_known() && size.value() % heads != 0)
    i.fail("{} elements cannot be divided among {} heads", size.value(), heads);
  return exact_div(size, heads);
}

void infer_attention(Inference& i) {
  ElementType q_type = i.element(0), v_type = i.element(2);
  if (!i.has_shape(0) || !i.has_shape(1) || !i.has_shape(2)) {
    i.output(0, q_type, std::nullopt);
    for (size_t output : {1, 2, 3}) i.output(output, output == 2 ? v_type : q_type, std::nullopt);
    return;
  }
  const bool flat = i.rank(0) == 3;
  if (i.rank(0) != 3 && i.rank(0) != 4) i.fail("Q must have rank 3 or 4, it has rank {}", i.rank(0));
  i.require_rank(1, i.rank(0));
  i.require_rank(2, i.rank(0));
  if (i.has_input(4) != i.has_input(5))
    i.fail_with(ErrorCode::missing_input, "past_key and past_value must be given together");
  if (i.has_input(6) && i.has_input(4))
    i.fail_with(ErrorCode::invalid_value, "nonpad_kv_seqlen cannot be combined with past_key and past_value");
  const SymbolicShape &q = i.shape(0), &k = i.shape(1), &v = i.shape(2);
  Dim batch = i.equal(i.equal(q[0], k[0], "the batches of Q and K"), v[0], "the batches of Q and V");
  const size_t sequence = flat ? 1 : 2;
  int64_t q_given = i.node().int_attribute("q_num_heads", 0), kv_given = i.node().int_attribute("kv_num_heads", 0);
  Dim q_heads = flat ? Dim(q_given) : q[1], kv_heads = flat ? Dim(kv_given) : k[1];
  Dim q_size = flat ? divided(i, q[2], q_given, "q_num_heads") : q[3];
  Dim k_size = flat ? divided(i, k[2], kv_given, "kv_num_heads") : k[3];
  Dim v_size = flat ? divided(i, v[2], kv_given, "kv_num_heads") : v[3];
  i.equal(q_size, k_size, "the head sizes of Q and K");
  if (!flat) i.equal(k[1], v[1], "the heads of K and V");
  Dim fresh = i.equal(k[sequence], v[sequence], "the sequence lengths of K and V");
  if (q_heads.is_known() && kv_heads.is_known() && (kv_heads.value() == 0 || q_heads.value() % kv_heads.value() != 0)) {
    i.fail("{} query heads cannot be shared by {} key and value heads", q_heads.value(), kv_heads.value());
  }
  Dim total = fresh;
  if (i.has_input(4)) {
    i.require_rank(4, 4);
    i.require_rank(5, 4);
    Dim past = i.has_shape(4) ? i.shape(4)[2] : Dim::unknown();
    if (i.has_shape(4)) {
      i.equal(i.shape(4)[0], batch, "the batches of past_key and Q");
      i.equal(i.shape(4)[1], kv_heads, "the heads of past_key and K");
      i.equal(i.shape(4)[3], k_size, "the head sizes of past_key and K");
    }
    if (i.has_shape(5)) {
      past = i.equal(past, i.shape(5)[2], "the sequence lengths of past_key and past_value");
      i.equal(i.shape(5)[0], batch, "the batches of past_value and Q");
      i.equal(i.shape(5)[1], kv_heads, "the heads of past_value and V");
      i.equal(i.shape(5)[3], v_size, "the head sizes of past_value and V");
    }
    total = past + fresh;
  }
  i.require_rank(6, 1);
  if (i.has_shape(6)) i.equal(i.shape(6)[0], batch, "the size of nonpad_kv_seqlen and the batch");
  if (flat) {
    Dim width = q_heads * v_size;
    i.output(0, q_type, SymbolicShape{batch, q[1], width});
  } else {
    i.output(0, q_type, SymbolicShape{batch, q_heads, q[2], v_size});
  }
  i.output(1, q_type, SymbolicShape{batch, kv_heads, total, k_size});
  i.output(2, v_type, SymbolicShape{batch, kv_heads, total, v_size});
  i.output(3, q_type, SymbolicShape{batch, q_heads, q[sequence], total});
}

// Of Q and every key, which serve an output of all of V's columns, and of the weights and every value.
Dim multiply_adds_of_attention(const ir::Node& node, std::span<const CostTensor> inputs) {
  if (inputs.size() < 3 || !inputs[2].shape) return Dim::unknown();
  const SymbolicShape &q = *inputs[0].shape, &k = *inputs[1].shape, &v = *inputs[2].shape;
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) return Dim::unknown();
  const bool flat = q.size() == 3;
  Dim keys = k[flat ? 1 : 2];
  if (inputs.size() > 4 && inputs[4].shape && inputs[4].shape->size() == 4) keys = keys + (*inputs[4].shape)[2];
  const Dim heads = flat ? Dim(node.int_attribute("kv_num_heads", 0)) : Dim(1);
  const Dim k_size = exact_div(k.back(), heads), v_size = exact_div(v.back(), heads);
  return k_size == v_size ? Dim(2) * keys : keys + floor_div(keys * k_size, v_size);
}

// Of [batch, length, 3 * heads * size]: the queries of all heads, then the keys, then the values.
void infer_packed_attention(Inference& i) {
  const int64_t heads = i.node().int_attribute("num_heads", 0);
  if (heads < 1)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("num_heads is {}; it must be at least 1", heads));
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank(0, 3);
  SymbolicShape y = i.shape(0);
  y[2] = divided(i, y[2], 3 * heads, "3 * num_heads") * heads;
  i.output(0, i.element(0), std::move(y));
}

Dim multiply_adds_of_packed_attention(const ir::Node&, std::span<const CostTensor> inputs) {
  return inputs[0].shape && inputs[0].shape->size() == 3 ? Dim(2) * (*inputs[0].shape)[1] : Dim::unknown();
}

}  // namespace

void decompose_attention(Decomposition& d);
void decompose_packed_attention(Decomposition& d);

void define_attention(OperatorList& list) {
  list.add("Attention", {23, 24, 25})
      .input("Q", "T1")
      .input("K", "T1")
      .input("V", "T2")
      .optional_input("attn_mask", "U")
      .optional_input("past_key", "T1")
      .optional_input("past_value", "T2")
      .optional_input("nonpad_kv_seqlen", TypeSet{ElementType::int64})
      .output("Y", "T1")
      .optional_output("present_key", "T1")
      .optional_output("present_value", "T2")
      .optional_output("qk_matmul_output", "T1")
      .types("T1", types::floats)
      .types("T2", types::floats)
      .types("U", types::numbers | types::bools)
      .attribute("is_causal", AttributeKind::int_)
      .attribute("kv_num_heads", AttributeKind::int_)
      .attribute("left_window_size", AttributeKind::int_)
      .attribute("q_num_heads", AttributeKind::int_)
      .attribute("qk_matmul_output_mode", AttributeKind::int_)
      .attribute("right_window_size", AttributeKind::int_)
      .attribute("scale", AttributeKind::float_)
      .attribute("softcap", AttributeKind::float_)
      .attribute("softmax_precision", AttributeKind::int_)
      .infer(infer_attention)
      .costs(multiply_adds_of_attention)
      .decompose(decompose_attention)
      .input_since(24, 6)
      .attribute_since(25, "left_window_size", -1)
      .attribute_since(25, "right_window_size", -1);
  list.add("PackedAttention", {1}, tenon_domain)
      .input("packed", "T")
      .optional_input("attn_mask", "U")
      .output("Y", "T")
      .types("T", types::floats)
      .types("U", types::numbers | types::bools)
      .attribute("is_causal", AttributeKind::int_)
      .attribute("left_window_size", AttributeKind::int_)
      .required_attribute("num_heads", AttributeKind::int_)
      .attribute("right_window_size", AttributeKind::int_)
      .attribute("scale", AttributeKind::float_)
      .attribute("softcap", AttributeKind::float_)
      .infer(infer_packed_attention)
      .costs(multiply_adds_of_packed_attention)
      .decompose(decompose_packed_attention);
}

}  // namespace tenon::ops
