#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_non_zero(Inference& i) {
  Dim rank = i.has_shape(0) ? Dim(i.rank(0)) : Dim::unknown();
  i.output(0, ElementType::int64, SymbolicShape{std::move(rank), Dim::unknown()});
}

void infer_compress(Inference& i) {
  i.require_rank(1, 1);
  if (!i.node().attribute("axis")) return i.output(0, i.element(0), SymbolicShape{Dim::unknown()});
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape result = i.shape(0);
  result[static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)))] = Dim::unknown();
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

void define_non_zero(OperatorList& list) {
  list.add("NonZero", {9, 13})
      .input("X", types::movable).output("Y", TypeSet{ElementType::int64})
      .infer(infer_non_zero);
  list.add("Compress", {9, 11, 28})
      .input("input", "T").input("condition", types::bools).output("output", "T").types("T", types::movable)
      .attribute("axis", ir::AttributeKind::int_)
      .infer(infer_compress);
}

}  // namespace tenon::ops
