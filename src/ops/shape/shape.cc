#include <algorithm>

#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// The dims from start to end; both count from the end when negative and are clamped.
void infer_shape(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, ElementType::int64, SymbolicShape{Dim::unknown()});
  const SymbolicShape& shape = i.shape(0);
  int64_t rank = i.rank(0);
  auto clamp = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  int64_t start = clamp(i.node().int_attribute("start", 0));
  int64_t end = std::max(start, clamp(i.node().int_attribute("end", rank)));
  SymbolicValues values;
  for (int64_t axis = start; axis < end; ++axis) values.push_back(shape[static_cast<size_t>(axis)]);
  i.output(0, ElementType::int64, SymbolicShape{Dim(end - start)});
  i.output_values(0, std::move(values));
}

void infer_size(Inference& i) {
  i.output(0, ElementType::int64, SymbolicShape{});
  if (i.has_shape(0)) i.output_values(0, {element_count(i.shape(0))});
}

}  // namespace

void define_shape(OperatorList& list) {
  list.add("Shape", {1, 13, 15, 19, 21, 23, 24, 25})
      .input("data", "T")
      .output("shape", TypeSet{ElementType::int64})
      .types("T", types::all)
      .attribute("start", AttributeKind::int_)
      .attribute("end", AttributeKind::int_)
      .infer(infer_shape)
      .reads(Reads::shape)
      .attribute_since(15, "start", 0)
      .attribute_since(15, "end");
  list.add("Size", {1, 13, 19, 21, 23, 24, 25})
      .input("data", "T")
      .output("size", TypeSet{ElementType::int64})
      .types("T", types::all)
      .infer(infer_size)
      .reads(Reads::shape);
}

}  // namespace tenon::ops
