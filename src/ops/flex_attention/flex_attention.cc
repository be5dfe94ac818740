#include "ops/flex_attention/flex_attention.h"

#include <algorithm>

#include "ops/attention/decompose.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

ElementType softmax_precision(const ir::Node& node, ElementType data) {
  const auto given = static_cast<ElementType>(node.int_attribute("softmax_precision", 0));
  if (given != ElementType::undefined) return given;
  return data == ElementType::float64 ? data : ElementType::float32;
}

namespace {

using ir::AttributeKind;

bool may_be_equal(const SymbolicShape& a, const SymbolicShape& b) {
  return std::ranges::equal(
      a, b, [](const Dim& x, const Dim& y) { return !x.is_known() || !y.is_known() || x.value() == y.value(); });
}

// A graph that is given the scores, or the weights, and returns them changed.
void infer_modifier(Inference& i, const char* name, const ir::Type& type) {
  if (!i.node().attribute(name)) return;
  Fact fact;
  fact.type = type;
  auto results = i.infer_subgraph(name, {&fact, 1});
  if (!results) return;
  const size_t inputs = i.node().graph_attribute(name)->inputs().size();
  if (inputs != 1 || results->size() != 1) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("{} must have 1 input and 1 output, it has {} and {}", name, inputs, results->size()));
  }
  const ir::Type& result = (*results)[0].type;
  const bool other_element = result.known() && type.element != ElementType::undefined && result.element != type.element;
  if (!other_element && (!result.shape || may_be_equal(*result.shape, *type.shape))) return;
  i.fail_with(
      other_element ? ErrorCode::type_mismatch : ErrorCode::shape_mismatch,
      fmt::format("{} is given {} and returns {}; they must be equal", name, type.to_string(), result.to_string()));
}

void infer_flex_attention(Inference& i) {
  const ElementType precision = softmax_precision(i.node(), i.element(0));
  if (!types::floats.contains(precision) && i.element(0) != ElementType::undefined) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("softmax_precision {} is no type of floats", name_of(precision)));
  }
  for (size_t input : {0, 1, 2}) i.require_rank(input, 4);
  auto dim = [&](size_t input, size_t axis) { return i.has_shape(input) ? i.shape(input)[axis] : Dim::unknown(); };
  Dim batch = i.equal(i.equal(dim(0, 0), dim(1, 0), "the batches of Q and K"), dim(2, 0), "the batches of Q and V");
  Dim heads = dim(0, 1), shared = i.equal(dim(1, 1), dim(2, 1), "the heads of K and V");
  if (heads.is_known() && shared.is_known() && (shared.value() == 0 || heads.value() % shared.value() != 0))
    i.fail("{} query heads cannot share {} key and value heads", heads.value(), shared.value());
  i.equal(dim(0, 3), dim(1, 3), "the head sizes of Q and K");
  Dim keys = i.equal(dim(1, 2), dim(2, 2), "the sequence lengths of K and V");
  const ir::Type scores = ir::Type::tensor(precision, SymbolicShape{batch, heads, dim(0, 2), keys});
  infer_modifier(i, "score_mod", scores);
  infer_modifier(i, "prob_mod", scores);
  i.output(0, i.element(0), SymbolicShape{batch, heads, dim(0, 2), dim(2, 3)});
}

// What the node's graph makes of x, which it sees in the type `precision`.
Term modified(Decomposition& d, const char* name, Term x, ElementType precision) {
  const ir::Graph* graph = d.node().graph_attribute(name);
  if (!graph) return x;
  std::vector<ir::Value*> results = d.add_nodes_of(*graph, {cast(x, precision).value});
  if (results.size() != 1) d.give_up(fmt::format("{} does not have one output", name));
  return cast(reshape(Term{&d, results[0], precision}, shape_of(x)), x.type);
}

void decompose_flex_attention(Decomposition& d) {
  const ir::Node& node = d.node();
  const ElementType precision = softmax_precision(node, d.element(0));
  const ElementType type = precision == ElementType::float64 ? precision : wide(d.element(0));
  auto operand = [&](size_t i) { return cast(d.input(i), type); };
  Term q = operand(0), k = operand(1), v = operand(2);
  if (const int64_t heads = d.known_size(0, 1); heads < 0 || heads != d.known_size(1, 1)) {
    k = repeat_heads(k, size_of(q, 1));
    v = repeat_heads(v, size_of(q, 1));
  }
  Term scale =
      node.attribute("scale") ? q.number(node.float_attribute("scale", 1)) : 1 / sqrt(cast(size_of(q, 3), type));
  Term scores = d.add("MatMul", {q, transpose(k, {0, 1, 3, 2})}) * scale;
  Term weights = d.add("Softmax", {modified(d, "score_mod", scores, precision)}, {{"axis", -1}});
  d.output(0, d.add("MatMul", {modified(d, "prob_mod", weights, precision), v}));
}

}  // namespace

void define_flex_attention(OperatorList& list) {
  list.add("FlexAttention", {1}, ai_onnx_preview)
      .input("Q", "T1")
      .input("K", "T1")
      .input("V", "T1")
      .output("Y", "T1")
      .types("T1", types::floats)
      .attribute("prob_mod", AttributeKind::graph)
      .attribute("scale", AttributeKind::float_)
      .attribute("score_mod", AttributeKind::graph)
      .attribute("softmax_precision", AttributeKind::int_)
      .infer(infer_flex_attention)
      .decompose(decompose_flex_attention);
}

}  // namespace tenon::ops
