#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_constant_of_shape(Inference& i) {
  i.require_rank(0, 1);
  const Tensor* value = i.node().tensor_attribute("value");
  if (value && value->elements() != 1) {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("value must have one element, it has {}", value->elements()));
  }
  ElementType element = value ? value->type() : ElementType::float32;
  auto sizes = i.values(0);
  if (!sizes) {
    if (!i.has_shape(0) || !i.shape(0)[0].is_known()) return i.output(0, element, std::nullopt);
    SymbolicShape unknown;
    int64_t rank = i.shape(0)[0].value();
    if (rank > static_cast<int64_t>(most_values)) i.fail("a tensor cannot have {} axes", rank);
    for (int64_t axis = 0; axis < rank; ++axis) unknown.push_back(Dim::unknown());
    return i.output(0, element, std::move(unknown));
  }
  for (size_t axis = 0; axis < sizes->size(); ++axis) {
    const Dim& size = (*sizes)[axis];
    if (size.is_known() && size.value() < 0) i.fail("the shape has size {} on axis {}", size.value(), axis);
  }
  SymbolicShape shape(sizes->begin(), sizes->end());
  i.output(0, element, shape);
  if (!value || element != ElementType::int64 || shape.size() > 1) return;
  Dim count = element_count(shape);
  if (count.is_known() && count.value() <= static_cast<int64_t>(most_values)) {
    i.output_values(0, SymbolicValues(static_cast<size_t>(count.value()), Dim(value->data<int64_t>()[0])));
  }
}

// The element type is dtype, or that of the input.
void infer_eye_like(Inference& i) {
  i.require_rank(0, 2);
  i.output(0, i.element_attribute("dtype", i.element(0)), i.type(0).shape);
}

}  // namespace

void define_constant_of_shape(OperatorList& list) {
  list.add("ConstantOfShape", {9, 20, 21, 23, 24, 25})
      .input("input", TypeSet{ElementType::int64})
      .output("output", types::all)
      .attribute("value", AttributeKind::tensor)
      .infer(infer_constant_of_shape);
  list.add("EyeLike", {9, 22})
      .input("input", types::numbers | types::bools)
      .output("output", types::numbers | types::bools)
      .attribute("dtype", AttributeKind::int_)
      .attribute("k", AttributeKind::int_)
      .infer(infer_eye_like);
}

}  // namespace tenon::ops
