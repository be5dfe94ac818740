#include "ops/flex_attention/flex_attention.h"

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
  if (result.known() && type.element != ElementType::undefined && result.element != type.element) {
    i.fail_with(ErrorCode::type_mismatch, fmt::format("{} is given {} and returns {}; they must be equal", name,
                                                      type.to_string(), result.to_string()));
  }
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
      .infer(infer_flex_attention);
}

}  // namespace tenon::ops
