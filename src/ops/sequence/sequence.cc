#include "ops/control_flow/control_flow.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;
using ir::Type;

// The type of the items of sequence input i, as far as known.
Type item_type(const Inference& i, size_t input) {
  const Type& type = i.type(input);
  return type.kind == Type::Kind::sequence && type.inner ? *type.inner : Type{};
}

void give_sequence(Inference& i, Type item) {
  if (item.known())
    i.output(0, Type::sequence(std::move(item)));
  else
    i.output(0, i.type(0));
}

void infer_construct(Inference& i) {
  Type item;
  for (size_t k = 0; k < i.input_count(); ++k) item = join(item, i.type(k));
  i.output(0, Type::sequence(std::move(item)));
}

void infer_empty(Inference& i) {
  i.output(0, Type::sequence(Type::tensor(i.element_attribute("dtype", ElementType::float32))));
}

void infer_insert(Inference& i) {
  Type item = item_type(i, 0);
  if (item.known() && i.type(1).known() && !ir::same_kind(item, i.type(1))) {
    i.fail_with(ErrorCode::type_mismatch,
                fmt::format("the sequence holds {}, {} is inserted", item.to_string(), i.type(1).to_string()));
  }
  // An empty sequence holds no shape yet.
  give_sequence(i, join(item, i.type(1)));
}

void infer_split(Inference& i) {
  Type item = Type::tensor(i.element(0), i.type(0).shape);
  if (item.shape) {
    auto axis = i.axis(i.node().int_attribute("axis", 0), i.rank(0));
    Dim& size = (*item.shape)[static_cast<size_t>(axis)];
    if (i.has_input(1)) {
      auto split = i.ints(1);
      size = split && i.has_shape(1) && i.rank(1) == 0 && split->size() == 1 && size.is_known() && (*split)[0] > 0 &&
                     size.value() % (*split)[0] == 0
                 ? Dim((*split)[0])
                 : Dim::unknown();
    } else if (i.node().int_attribute("keepdims", 1) != 0) {
      size = Dim(1);
    } else {
      item.shape->erase(item.shape->begin() + axis);
    }
  }
  i.output(0, Type::sequence(std::move(item)));
}

void infer_concat(Inference& i) {
  Type item = item_type(i, 0);
  if (!item.shape) return i.output(0, item.element, std::nullopt);
  bool new_axis = i.node().int_attribute("new_axis", 0) != 0;
  SymbolicShape shape = *item.shape;
  int axis = i.axis(i.node().int_attribute("axis", 0), static_cast<int>(shape.size()) + (new_axis ? 1 : 0));
  if (new_axis)
    shape.insert(shape.begin() + axis, Dim::unknown());
  else
    shape[static_cast<size_t>(axis)] = Dim::unknown();
  i.output(0, item.element, std::move(shape));
}

void infer_map(Inference& i) {
  std::vector<Fact> inputs(i.input_count());
  for (size_t k = 0; k < i.input_count(); ++k) {
    if (!i.has_input(k)) i.fail_with(ErrorCode::invalid_model, fmt::format("input {} is left out", k));
    inputs[k].type = i.type(k).kind == Type::Kind::sequence ? item_type(i, k) : i.type(k);
  }
  auto results = i.infer_subgraph("body", inputs);
  if (!results) return;
  if (results->size() < i.output_count()) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("the body has {} outputs, the node {}", results->size(), i.output_count()));
  }
  for (size_t k = 0; k < i.output_count(); ++k) i.output(k, Type::sequence((*results)[k].type));
}

}  // namespace

void decompose_sequence_map(Decomposition& d);

void define_sequence(OperatorList& list) {
  constexpr TypeSet held = types::all;
  list.add("SequenceConstruct", {11})
      .variadic_input("inputs", "T")
      .output("output_sequence", "S")
      .types("T", held)
      .types("S", held, Kinds::sequence)
      .infer(infer_construct);
  list.add("SequenceEmpty", {11})
      .output("output", "S")
      .types("S", held, Kinds::sequence)
      .attribute("dtype", AttributeKind::int_)
      .infer(infer_empty);
  list.add("SequenceAt", {11})
      .input("input_sequence", "S")
      .input("position", types::index)
      .output("tensor", "T")
      .types("S", held, Kinds::sequence)
      .types("T", held)
      .infer([](Inference& i) { i.output(0, item_type(i, 0)); });
  list.add("SequenceInsert", {11})
      .input("input_sequence", "S")
      .input("tensor", "T")
      .optional_input("position", types::index)
      .output("output_sequence", "S")
      .types("S", held, Kinds::sequence)
      .types("T", held)
      .infer(infer_insert);
  list.add("SequenceErase", {11})
      .input("input_sequence", "S")
      .optional_input("position", types::index)
      .output("output_sequence", "S")
      .types("S", held, Kinds::sequence)
      .infer([](Inference& i) { i.same_as_input(0); });
  list.add("SequenceLength", {11})
      .input("input_sequence", "S")
      .output("length", TypeSet{ElementType::int64})
      .types("S", held, Kinds::sequence)
      .infer([](Inference& i) { i.output(0, ElementType::int64, SymbolicShape{}); });
  list.add("SplitToSequence", {11, 24})
      .input("input", "T")
      .optional_input("split", types::index)
      .output("output_sequence", "S")
      .types("T", types::movable)
      .types("S", types::movable, Kinds::sequence)
      .attribute("axis", AttributeKind::int_)
      .attribute("keepdims", AttributeKind::int_)
      .infer(infer_split);
  list.add("ConcatFromSequence", {11})
      .input("input_sequence", "S")
      .output("concat_result", "T")
      .types("S", types::movable, Kinds::sequence)
      .types("T", types::movable)
      .required_attribute("axis", AttributeKind::int_)
      .attribute("new_axis", AttributeKind::int_)
      .infer(infer_concat);
  list.add("SequenceMap", {17})
      .input("input_sequence", "S")
      .variadic_input("additional_inputs", "V", /*at_least=*/0, /*same_types=*/false)
      .variadic_output("out_sequence", "R", /*at_least=*/1, /*same_types=*/false)
      .types("S", held, Kinds::sequence)
      .types("V", held, Kinds::any)
      .types("R", held, Kinds::sequence)
      .required_attribute("body", AttributeKind::graph)
      .infer(infer_map)
      .decompose(decompose_sequence_map);
}

}  // namespace tenon::ops
