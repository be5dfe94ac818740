#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_unique(Inference& i) {
  Dim count = Dim::unknown();
  std::optional<SymbolicShape> shape = SymbolicShape{count};
  Dim all = i.has_shape(0) ? element_count(i.shape(0)) : Dim::unknown();
  if (i.node().attribute("axis")) {
    shape.reset();
    if (i.has_shape(0)) {
      auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)));
      shape = i.shape(0);
      all = (*shape)[axis];
      (*shape)[axis] = count;
    }
  }
  i.output(0, i.element(0), std::move(shape));
  i.output(1, ElementType::int64, SymbolicShape{count});
  i.output(2, ElementType::int64, SymbolicShape{all});
  i.output(3, ElementType::int64, SymbolicShape{count});
}

}  // namespace

void define_unique(OperatorList& list) {
  constexpr TypeSet positions{ElementType::int64};
  list.add("Unique", {11, 28})
      .input("X", "T")
      .output("Y", "T")
      .optional_output("indices", positions)
      .optional_output("inverse_indices", positions)
      .optional_output("counts", positions)
      .types("T", types::movable)
      .attribute("axis", AttributeKind::int_)
      .attribute("sorted", AttributeKind::int_)
      .infer(infer_unique);
}

}  // namespace tenon::ops
