#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// A dim picked out of a shape stays a dim.
void pick_values(Inference& i) {
  auto data = i.rank(0) == 1 ? i.followed_values(0) : std::nullopt;
  if (!data || i.rank(1) > 1) return;
  auto indices = i.followed_values(1);
  if (!indices) return;
  SymbolicValues picked;
  for (const Dim& index : *indices) {
    if (!index.is_known()) return;
    int64_t at = index.value() < 0 ? index.value() + static_cast<int64_t>(data->size()) : index.value();
    if (at < 0 || at >= static_cast<int64_t>(data->size())) {
      i.fail_with(ErrorCode::invalid_value,
                  fmt::format("index {} is out of range for size {} on axis 0", index.value(), data->size()));
    }
    picked.push_back((*data)[static_cast<size_t>(at)]);
  }
  i.output_values(0, std::move(picked));
}

void infer_gather(Inference& i) {
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 1);
  int axis = i.axis(i.node().int_attribute("axis", 0), i.rank(0));
  const SymbolicShape& shape = i.shape(0);
  SymbolicShape result(shape.begin(), shape.begin() + axis);
  for (const Dim& dim : i.shape(1)) result.push_back(dim);
  for (const Dim* dim = shape.begin() + axis + 1; dim != shape.end(); ++dim) result.push_back(*dim);
  i.output(0, i.element(0), std::move(result));
  pick_values(i);
}

// One index picks a part.
std::optional<int64_t> find_picked(const Layout& layout, size_t) {
  auto indices = layout.ints(1);
  if (!indices || indices->size() != 1) return std::nullopt;
  const Shape& whole = *layout.inputs[0];
  int64_t axis = layout.node.int_attribute("axis", 0), index = indices->front();
  if (axis < 0) axis += whole.rank();
  const int64_t size = whole[static_cast<int>(axis)];
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;  // the kernel says what is wrong
  Shape part = whole;
  part[static_cast<int>(axis)] = 1;
  return adjacent_part(whole, part, static_cast<int>(axis), index);
}

void infer_gather_elements(Inference& i) {
  if (i.has_shape(0) && i.has_shape(1)) {
    if (i.rank(0) != i.rank(1)) i.fail("data has rank {}, indices rank {}", i.rank(0), i.rank(1));
    auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)));
    for (size_t a = 0; a < i.shape(1).size(); ++a) {
      const Dim &data = i.shape(0)[a], &indices = i.shape(1)[a];
      if (a != axis && data.is_known() && indices.is_known() && indices.value() > data.value()) {
        i.fail("indices have size {} on axis {}, data only {}", indices.value(), a, data.value());
      }
    }
  }
  i.output(0, i.element(0), i.type(1).shape);
}

void infer_gather_nd(Inference& i) {
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 1);
  i.require_rank_at_least(1, 1);
  const SymbolicShape &data = i.shape(0), &indices = i.shape(1);
  int64_t batch = i.node().int_attribute("batch_dims", 0);
  if (batch < 0 || batch >= std::min(i.rank(0), i.rank(1)))
    i.fail("batch_dims is {}; it must be below both ranks", batch);
  SymbolicShape result(indices.begin(), indices.end() - 1);
  for (size_t axis = 0; axis < static_cast<size_t>(batch); ++axis)
    result[axis] = i.equal(data[axis], indices[axis], "batch sizes of data and indices");
  const Dim& depth = indices.back();
  if (!depth.is_known()) return i.output(0, i.element(0), std::nullopt);
  if (depth.value() < 1 || depth.value() > i.rank(0) - batch) {
    i.fail("the last size of indices is {}; it must be 1 to {}", depth.value(), i.rank(0) - batch);
  }
  for (const Dim* dim = data.begin() + batch + depth.value(); dim != data.end(); ++dim) result.push_back(*dim);
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

void define_gather(OperatorList& list) {
  list.add("Gather", {1, 11, 13})
      .input("data", "T")
      .input("indices", "Tind")
      .output("output", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .attribute("axis", AttributeKind::int_)
      .infer(infer_gather)
      .reads(Reads::picked)
      .views(find_picked)
      .lower(11, 1, axes_from_front);
  list.add("GatherElements", {11, 13})
      .input("data", "T")
      .input("indices", "Tind")
      .output("output", "T")
      .types("T", types::movable)
      .types("Tind", types::index)
      .attribute("axis", AttributeKind::int_)
      .infer(infer_gather_elements)
      .reads(Reads::picked);
  list.add("GatherND", {11, 12, 13})
      .input("data", "T")
      .input("indices", TypeSet{ElementType::int64})
      .output("output", "T")
      .types("T", types::movable)
      .attribute("batch_dims", AttributeKind::int_)
      .infer(infer_gather_nd)
      .reads(Reads::picked)
      .attribute_since(12, "batch_dims", 0);
}

}  // namespace tenon::ops
