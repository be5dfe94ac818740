#include <algorithm>
#include <limits>

#include "ops/inference.h"
#include "ops/qlinear/qlinear.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using ir::AttributeKind;

constexpr TypeSet bytes{int8, uint8}, floats{float32};

// ---- QLinearReduceMean

void infer_reduce_mean(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const std::vector<int> axes = i.axes(i.node().ints_attribute("axes"), i.rank(0));
  SymbolicShape shape;
  for (int axis = 0; axis < i.rank(0); ++axis) {
    const bool is_reduced = axes.empty() || std::ranges::find(axes, axis) != axes.end();
    if (!is_reduced) shape.push_back(i.shape(0)[static_cast<size_t>(axis)]);
    if (is_reduced && i.node().int_attribute("keepdims", 1) != 0) shape.push_back(1);
  }
  i.output(0, i.element(0), std::move(shape));
}

void decompose_reduce_mean(Decomposition& d) {
  const auto axes = d.node().ints_attribute("axes");
  const Term list = axes.empty() ? Term() : d.ints({axes.begin(), axes.end()});
  const bool keeps = d.node().int_attribute("keepdims", 1) != 0;
  d.output(0, quantized(d, reduce("ReduceMean", dequantized(d, 0), list, keeps), 3, d.element(0)));
}

// ---- QEmbedLayerNormalization

void infer_embedding(Inference& i) {
  std::optional<SymbolicShape> shape, batch;
  if (i.has_shape(0)) {
    i.require_rank(0, 2);
    batch = SymbolicShape{i.shape(0)[0]};
    if (i.has_shape(2)) shape = SymbolicShape{i.shape(0)[0], i.shape(0)[1], i.shape(2).back()};
  }
  i.output(0, i.element(8), std::move(shape));
  i.output(1, int32, std::move(batch));
}

void decompose_embedding(Decomposition& d) {
  // Tables, scales and zero points are at the same place of three lists.
  const auto in_floats = [&](Term codes, size_t which) {
    return d.add("DequantizeLinear", {codes, d.input(8 + which), d.input(13 + which)}, {}, d.element(8 + which));
  };
  const auto table = [&](size_t which) { return d.input(which + 2); };
  const Term ids = d.input(0), positions = slice(table(1), d.ints({0}), size_of(ids, 1), 0);
  Term sum = in_floats(gather(table(0), ids, 0), 0) + in_floats(positions, 1);
  if (d.has_input(1)) sum = sum + in_floats(gather(table(2), d.input(1), 0), 2);
  const Term gamma = in_floats(table(3), 3), beta = in_floats(table(4), 4);
  d.output(0, d.add("LayerNormalization", {sum, gamma, beta},
                    {{"axis", -1}, {"epsilon", d.node().float_attribute("epsilon", 1e-12f)}}));
  if (!d.wants_output(1)) return;
  const Term zeros = expand(d.number(0, int32), size_of(ids, 0));
  d.output(1, d.has_input(7) ? reduce("ReduceSum", cast(equal(d.input(7), 1), int32), d.ints({1}), false) : zeros);
}

// ---- DynamicQuantizeLSTM

void infer_lstm(Inference& i) {
  std::optional<SymbolicShape> all, last;
  if (i.has_shape(0) && i.has_shape(2)) {
    i.require_rank(0, 3);
    i.require_rank(2, 3);
    const SymbolicShape &x = i.shape(0), &r = i.shape(2);
    all = SymbolicShape{x[0], r[0], x[1], r[1]};
    last = SymbolicShape{r[0], x[1], r[1]};
  }
  i.output(0, float32, std::move(all));
  i.output(1, float32, last);
  i.output(2, float32, std::move(last));
}

// Weights [directions, inputs, outputs] of input i as LSTM has them. Their scales and zero points are by direction, or
// by direction and output.
Term lstm_weights(Decomposition& d, size_t i, size_t scale) {
  const auto by_direction = [&](Term x) {
    return unsqueeze(x, d.rank(scale) == 1 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
  };
  const Term zeros = by_direction(cast(d.input(scale + 1), float32));
  return transpose((cast(d.input(i), float32) - zeros) * by_direction(d.input(scale)), {0, 2, 1});
}

void decompose_lstm(Decomposition& d) {
  const Term y = add_with_attributes(d, "LSTM",
                                     {d.input(0), lstm_weights(d, 1, 8), lstm_weights(d, 2, 10), d.input(3), d.input(4),
                                      d.input(5), d.input(6), d.input(7)},
                                     float32);
  ir::Node& lstm = *y.value->producer();
  d.output(0, y);
  for (size_t i : {1, 2}) {
    ir::Value* result = d.add_output(lstm);
    if (d.wants_output(i)) d.output(i, result);
  }
}

// ---- QAttention

int64_t heads_of(const ir::Node& node) { return std::max<int64_t>(1, node.int_attribute("num_heads", 1)); }

void infer_attention(Inference& i) {
  if (i.node().int_attribute("num_heads", 0) < 1)
    i.fail_with(ErrorCode::invalid_attribute, "num_heads must be positive");
  std::optional<SymbolicShape> shape, present;
  if (i.has_shape(0) && i.has_shape(1)) {
    i.require_rank(0, 3);
    i.require_rank(1, 2);
    const Dim hidden = floor_div(i.shape(1)[1], 3);
    i.equal(i.shape(0)[2], i.shape(1)[0], "the last axis of input and the first of weight");
    shape = SymbolicShape{i.shape(0)[0], i.shape(0)[1], hidden};
    const Dim past = i.has_shape(8) && i.rank(8) == 5 ? i.shape(8)[3] : i.has_input(8) ? Dim::unknown() : Dim(0);
    present = SymbolicShape{2, i.shape(0)[0], heads_of(i.node()), past + i.shape(0)[1],
                            floor_div(hidden, heads_of(i.node()))};
  }
  i.output(0, i.element(2), std::move(shape));
  i.output(1, i.element(2), std::move(present));
}

// What is added to a score, [queries, keys] or [batch, 1, 1, keys] or both: of keys that are padding the model's
// number, of later ones the lowest.
Term attention_mask(Decomposition& d, Term queries, Term keys, Term past, ElementType type) {
  const auto number = [&](double value) { return d.number(value, type); };
  Term mask;
  if (d.has_input(5)) {
    Term hidden;
    if (d.rank(5) == 1)
      hidden = negation(less(unsqueeze(d.indices(keys), {0}), unsqueeze(cast(d.input(5), int64), {1})));
    else
      hidden = equal(d.input(5), 0);
    const double filter = static_cast<double>(d.node().float_attribute("mask_filter_value", -10000));
    mask = unsqueeze(where(hidden, number(filter), number(0)), {1, 2});
  }
  if (d.node().int_attribute("unidirectional", 0) == 0) return mask;
  const Term later = greater(d.indices(keys), unsqueeze(d.indices(queries) + past, {1}));
  return where(later, number(std::numeric_limits<float>::lowest()), mask ? mask : number(0));
}

void decompose_attention(Decomposition& d) {
  const ir::Node& node = d.node();
  if (node.int_attribute("do_rotary", 0) != 0) d.give_up("it embeds positions (do_rotary)");
  if (node.int_attribute("past_present_share_buffer", 0) != 0) d.give_up("past and present share their memory");
  if (d.has_input(5) && d.rank(5) > 2) d.give_up("its mask has more than two axes");
  const Term sums = d.add("MatMulInteger", {d.input(0), d.input(1), d.input(6), d.input(7)}, {}, int32);
  const Term scale = d.wide_input(3) * d.wide_input(4), all = cast(sums, scale.type) * scale + d.wide_input(2);
  ir::Node& split = d.add_node("Split", {all.value});
  split.set_attribute({"axis", int64_t{-1}});
  split.set_attribute({"num_outputs", int64_t{3}});
  std::vector<Term> inputs;
  for (int k = 0; k < 3; ++k) inputs.push_back({all.decomposition, d.add_output(split), all.type});
  const Term queries = size_of(inputs[0], 1);
  Term past_length = d.ints({0}), past_key, past_value;
  if (d.has_input(8)) {
    past_length = size_of(d.input(8), 3);
    past_key = gather(d.wide_input(8), d.number(0, int64), 0);
    past_value = gather(d.wide_input(8), d.number(1, int64), 0);
  }
  const Term mask = attention_mask(d, queries, queries + past_length, past_length, all.type);
  ir::Node& attention = d.add_node(
      "Attention", {inputs[0].value, inputs[1].value, inputs[2].value, mask.value, past_key.value, past_value.value});
  for (const char* heads : {"q_num_heads", "kv_num_heads"}) attention.set_attribute({heads, heads_of(node)});
  if (node.attribute("scale")) attention.set_attribute({"scale", node.float_attribute("scale", 1)});
  d.output(0, Term{all.decomposition, d.add_output(attention), all.type});
  const Term key{all.decomposition, d.add_output(attention), all.type},
      value{all.decomposition, d.add_output(attention), all.type};
  if (d.wants_output(1)) d.output(1, concat({unsqueeze(key, {0}), unsqueeze(value, {0})}));
}

void define_lstm(OperatorList& list) {
  list.add("DynamicQuantizeLSTM", {1}, microsoft)
      .input("X", "T")
      .input("W", "T2")
      .input("R", "T2")
      .optional_input("B", "T")
      .optional_input("sequence_lens", TypeSet{int32})
      .optional_input("initial_h", "T")
      .optional_input("initial_c", "T")
      .optional_input("P", "T")
      .input("W_scale", "T")
      .input("W_zero_point", "T2")
      .input("R_scale", "T")
      .input("R_zero_point", "T2")
      .optional_output("Y", "T")
      .optional_output("Y_h", "T")
      .optional_output("Y_c", "T")
      .types("T", floats)
      .types("T2", bytes)
      .attribute("activation_alpha", AttributeKind::floats)
      .attribute("activation_beta", AttributeKind::floats)
      .attribute("activations", AttributeKind::strings)
      .attribute("clip", AttributeKind::float_)
      .attribute("direction", AttributeKind::string)
      .attribute("hidden_size", AttributeKind::int_)
      .attribute("input_forget", AttributeKind::int_)
      .infer(infer_lstm)
      .decompose(decompose_lstm);
}

void define_embedding(OperatorList& list) {
  list.add("QEmbedLayerNormalization", {1}, microsoft)
      .input("input_ids", "T1")
      .optional_input("segment_ids", "T1")
      .input("word_embedding_quant", "T2")
      .input("position_embedding_quant", "T2")
      .optional_input("segment_embedding", "T2")
      .input("gamma_quant", "T2")
      .input("beta_quant", "T2")
      .optional_input("mask", "T1")
      .input("word_embedding_scale", "T")
      .input("position_embedding_scale", "T")
      .optional_input("segment_embedding_scale", "T")
      .input("gamma_scale", "T")
      .input("beta_scale", "T")
      .input("word_embedding_zero_point", "T2")
      .input("position_embedding_zero_point", "T2")
      .optional_input("segment_embedding_zero_point", "T2")
      .input("gamma_zero_point", "T2")
      .input("beta_zero_point", "T2")
      .output("layernorm_out", "T")
      .output("mask_index_out", "T1")
      .types("T", floats)
      .types("T1", {int32})
      .types("T2", bytes)
      .attribute("epsilon", AttributeKind::float_)
      .infer(infer_embedding)
      .decompose(decompose_embedding);
}

void define_attention(OperatorList& list) {
  list.add("QAttention", {1}, microsoft)
      .input("input", "T1")
      .input("weight", "T2")
      .input("bias", "T3")
      .input("input_scale", "T3")
      .input("weight_scale", "T3")
      .optional_input("mask_index", TypeSet{int32})
      .optional_input("input_zero_point", "T1")
      .optional_input("weight_zero_point", "T2")
      .optional_input("past", "T3")
      .output("output", "T3")
      .optional_output("present", "T3")
      .types("T1", bytes)
      .types("T2", bytes)
      .types("T3", {float32, float16})
      .required_attribute("num_heads", AttributeKind::int_)
      .attribute("do_rotary", AttributeKind::int_)
      .attribute("mask_filter_value", AttributeKind::float_)
      .attribute("past_present_share_buffer", AttributeKind::int_)
      .attribute("scale", AttributeKind::float_)
      .attribute("unidirectional", AttributeKind::int_)
      .infer(infer_attention)
      .decompose(decompose_attention);
}

}  // namespace

void define_quantized_layers(OperatorList& list) {
  list.add("QLinearReduceMean", {1}, microsoft)
      .input("data", "T")
      .input("data_scale", floats)
      .optional_input("data_zero_point", "T")
      .input("reduced_scale", floats)
      .optional_input("reduced_zero_point", "T")
      .output("reduced", "T")
      .types("T", bytes)
      .required_attribute("axes", AttributeKind::ints)
      .required_attribute("keepdims", AttributeKind::int_)
      .infer(infer_reduce_mean)
      .decompose(decompose_reduce_mean);
  define_embedding(list);
  define_lstm(list);
  define_attention(list);
}

}  // namespace tenon::ops
