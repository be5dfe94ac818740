#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Shapes joined by Concat, as far as all parts are known; unknown parts of known length count as unknown values.
void join_values(Inference& i) {
  SymbolicValues joined;
  for (size_t input = 0; input < i.input_count(); ++input) {
    if (auto values = i.followed_values(input)) {
      for (const Dim& dim : *values) joined.push_back(dim);
      continue;
    }
    bool is_shape_like = i.element(input) == ElementType::int64 || i.element(input) == ElementType::int32;
    if (!is_shape_like || !i.shape(input)[0].is_known() ||
        i.shape(input)[0].value() > static_cast<int64_t>(most_values))
      return;
    for (int64_t n = i.shape(input)[0].value(); n > 0; --n) joined.push_back(Dim::unknown());
  }
  i.output_values(0, std::move(joined));
}

void infer_concat(Inference& i) {
  for (size_t input = 0; input < i.input_count(); ++input) {
    if (!i.has_input(input)) i.fail("input {} is left out", input);
    if (!i.has_shape(input)) return i.output(0, i.element(0), std::nullopt);
  }
  if (i.rank(0) == 0) i.fail("scalars cannot be joined; Unsqueeze them first");
  auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)));
  SymbolicShape result = i.shape(0);
  for (size_t input = 1; input < i.input_count(); ++input) {
    const SymbolicShape& shape = i.shape(input);
    if (shape.size() != result.size())
      i.fail("inputs 0 and {} have ranks {} and {}", input, result.size(), shape.size());
    for (size_t a = 0; a < shape.size(); ++a) {
      if (a == axis) {
        result[a] = result[a] + shape[a];
      } else if (result[a].is_known() && shape[a].is_known() && !(result[a] == shape[a])) {
        i.fail("inputs 0 and {} have sizes {} and {} on axis {}; only axis {} may differ", input, result[a].value(),
               shape[a].value(), a, axis);
      } else {
        result[a] = i.equal(result[a], shape[a], "sizes");
      }
    }
  }
  bool is_vector = result.size() == 1;
  i.output(0, i.element(0), std::move(result));
  if (is_vector) join_values(i);
}

std::optional<int64_t> find_input(const Layout& layout, size_t input) {
  const Shape& whole = *layout.outputs[0];
  int64_t axis = layout.node.int_attribute("axis", 0), start = 0;
  if (axis < 0) axis += whole.rank();
  for (size_t i = 0; i < input; ++i) start += (*layout.inputs[i])[static_cast<int>(axis)];
  return adjacent_part(whole, *layout.inputs[input], static_cast<int>(axis), start);
}

// Version 1 joined along axis 1 unless told otherwise.
void axis_was_one(ir::Node& node) {
  if (!node.attribute("axis")) node.set_attribute(ir::Attribute("axis", int64_t{1}));
}

}  // namespace

void define_concat(OperatorList& list) {
  list.add("Concat", {1, 4, 11, 13})
      .variadic_input("inputs", "T")
      .output("concat_result", "T")
      .types("T", types::movable)
      .required_attribute("axis", AttributeKind::int_)
      .infer(infer_concat)
      .parts(find_input)
      .lift(1, 4, axis_was_one)
      .lower(11, 4, axes_from_front);
}

}  // namespace tenon::ops
