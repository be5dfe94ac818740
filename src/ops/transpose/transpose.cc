#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_transpose(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& shape = i.shape(0);
  SymbolicShape result;
  if (!i.node().attribute("perm")) {
    for (size_t axis = shape.size(); axis-- > 0;) result.push_back(shape[axis]);
    return i.output(0, i.element(0), std::move(result));
  }
  std::vector<int64_t> permutation = i.node().ints_attribute("perm");
  if (permutation.size() != shape.size()) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("perm has {} axes, the input {}", permutation.size(), shape.size()));
  }
  for (int axis : i.axes(permutation, i.rank(0))) result.push_back(shape[static_cast<size_t>(axis)]);
  i.output(0, i.element(0), std::move(result));
}

// Moving axes of size 1 moves nothing.
std::optional<int64_t> keep_order(const Layout& layout, size_t) {
  const Shape& shape = *layout.inputs[0];
  std::vector<int64_t> permutation = layout.node.ints_attribute("perm");
  if (permutation.empty()) {
    for (int axis = shape.rank(); axis-- > 0;) permutation.push_back(axis);
  }
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (axis < 0) axis += shape.rank();
    if (shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return std::nullopt;
    last = axis;
  }
  return 0;
}

}  // namespace

void define_transpose(OperatorList& list) {
  list.add("Transpose", {1, 13, 21, 23, 24, 25})
      .input("data", "T")
      .output("transposed", "T")
      .types("T", types::all)
      .attribute("perm", ir::AttributeKind::ints)
      .infer(infer_transpose)
      .views(keep_order);
}

}  // namespace tenon::ops
