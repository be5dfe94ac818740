#include <algorithm>

#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// The content does not change, so the values of a shape that is reshaped stay what they are.
void give(Inference& i, SymbolicShape shape) {
  bool followed = shape.size() <= 1;
  i.output(0, i.element(0), std::move(shape));
  if (!followed) return;
  if (auto values = i.followed_values(0)) i.output_values(0, std::move(*values));
}

// The size that stands for -1. Axes copied by a 0 count on neither side, so that empty axes do not hide it.
Dim remaining_size(Inference& i, const SymbolicShape& target, const std::vector<bool>& copied, size_t free_axis) {
  Dim rest(1), total(1);
  for (size_t axis = 0; axis < target.size(); ++axis) {
    if (axis != free_axis && !copied[axis]) rest = rest * target[axis];
  }
  const SymbolicShape& shape = i.shape(0);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis >= copied.size() || !copied[axis]) total = total * shape[axis];
  }
  if (rest.is(0)) i.fail("the size of -1 is not determined, as another size of the new shape is 0");
  if (rest.is_known() && total.is_known() && total.value() % rest.value() != 0) {
    i.fail("{} elements cannot be split into parts of {}", total.value(), rest.value());
  }
  return exact_div(total, rest);
}

void infer_reshape(Inference& i) {
  i.require_rank(1, 1);
  auto values = i.values(1);
  if (!values) {
    if (!i.has_shape(1) || !i.shape(1)[0].is_known()) return i.output(0, i.element(0), std::nullopt);
    SymbolicShape unknown;
    int64_t rank = i.shape(1)[0].value();
    if (rank > static_cast<int64_t>(most_values)) i.fail("a tensor cannot have {} axes", rank);
    for (int64_t axis = 0; axis < rank; ++axis) unknown.push_back(Dim::unknown());
    return i.output(0, i.element(0), std::move(unknown));
  }
  bool zero_is_size = i.node().int_attribute("allowzero", 0) != 0, known = i.has_shape(0);
  SymbolicShape target(values->begin(), values->end());
  std::vector<bool> copied(target.size());
  std::optional<size_t> free_axis;
  for (size_t axis = 0; axis < target.size(); ++axis) {
    Dim& dim = target[axis];
    if (!dim.is_known() || dim.value() > 0) continue;
    if (dim.value() < -1) i.fail("the new shape has size {} on axis {}", dim.value(), axis);
    if (dim.value() == -1) {
      if (free_axis) i.fail("the new shape has -1 on axes {} and {}; one may have it", *free_axis, axis);
      free_axis = axis;
    } else if (!zero_is_size) {
      if (known && axis >= i.shape(0).size())
        i.fail("the new shape has 0 on axis {}, which the input does not have", axis);
      dim = known ? i.shape(0)[axis] : Dim::unknown();
      copied[axis] = true;
    }
  }
  if (free_axis) {
    target[*free_axis] = known ? remaining_size(i, target, copied, *free_axis) : Dim::unknown();
  } else if (known) {
    Dim before = element_count(i.shape(0)), after = element_count(target);
    if (before.is_known() && after.is_known() && !(before == after)) {
      i.fail("{} elements of shape {} cannot take shape {}", before.value(), to_string(i.shape(0)), to_string(target));
    }
  }
  give(i, std::move(target));
}

// The axes of input 1, which may be a scalar; nullopt when they are not known.
std::optional<std::vector<int64_t>> axes_of(Inference& i) {
  if (i.has_shape(1) && i.rank(1) > 1) i.fail("the axes must be a list");
  return i.ints(1);
}

void infer_squeeze(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& shape = i.shape(0);
  std::vector<bool> gone(shape.size());
  if (i.has_input(1)) {
    auto axes = axes_of(i);
    if (!axes) return i.output(0, i.element(0), std::nullopt);
    for (int axis : i.axes(*axes, i.rank(0))) {
      const Dim& dim = shape[static_cast<size_t>(axis)];
      if (dim.is_known() && !dim.is(1)) i.fail("axis {} has size {}, only size 1 can be removed", axis, dim.value());
      gone[static_cast<size_t>(axis)] = true;
    }
  } else {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].is_known()) return i.output(0, i.element(0), std::nullopt);
      gone[axis] = shape[axis].is(1);
    }
  }
  SymbolicShape result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!gone[axis]) result.push_back(shape[axis]);
  }
  give(i, std::move(result));
}

void infer_unsqueeze(Inference& i) {
  auto axes = axes_of(i);
  if (!i.has_shape(0) || !axes) return i.output(0, i.element(0), std::nullopt);
  size_t rank = i.shape(0).size() + axes->size();
  std::vector<bool> added(rank);
  for (int axis : i.axes(*axes, static_cast<int>(rank))) added[static_cast<size_t>(axis)] = true;
  SymbolicShape result;
  auto next = i.shape(0).begin();
  for (size_t axis = 0; axis < rank; ++axis) result.push_back(added[axis] ? Dim(1) : *next++);
  give(i, std::move(result));
}

void infer_flatten(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, i.element(0), SymbolicShape{Dim::unknown(), Dim::unknown()});
  const SymbolicShape& shape = i.shape(0);
  auto axis = i.axis(i.node().int_attribute("axis", 1), i.rank(0), /*one_past=*/true);
  SymbolicShape outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end());
  i.output(0, i.element(0), SymbolicShape{element_count(outer), element_count(inner)});
}

void shape_to_input(ir::Node& node) {
  node.remove_attribute("consumed_inputs");
  ints_attribute_to_input(node, "shape", 1);
}

void axes_to_input(ir::Node& node) { ints_attribute_to_input(node, "axes", 1); }

std::string axes_to_attribute(ir::Node& node) { return ints_input_to_attribute(node, 1, "axes"); }

std::string shape_to_attribute(ir::Node& node) { return ints_input_to_attribute(node, 1, "shape"); }

}  // namespace

void define_reshape(OperatorList& list) {
  constexpr TypeSet shape_type{ElementType::int64};
  list.add("Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25})
      .input("data", "T")
      .input("shape", shape_type)
      .output("reshaped", "T")
      .types("T", types::all)
      .attribute("allowzero", AttributeKind::int_)
      .infer(infer_reshape)
      .views(whole_input)
      .lift(1, 5, shape_to_input)
      .lower(5, 1, shape_to_attribute)
      .attribute_since(14, "allowzero", 0);
  list.add("Squeeze", {1, 11, 13, 21, 23, 24, 25})
      .input("data", "T")
      .optional_input("axes", shape_type)
      .output("squeezed", "T")
      .types("T", types::all)
      .infer(infer_squeeze)
      .views(whole_input)
      .lift(1, 13, axes_to_input)
      .lower(13, 11, axes_to_attribute)
      .lower(11, 1, axes_from_front);
  list.add("Unsqueeze", {1, 11, 13, 21, 23, 24, 25})
      .input("data", "T")
      .input("axes", shape_type)
      .output("expanded", "T")
      .types("T", types::all)
      .infer(infer_unsqueeze)
      .views(whole_input)
      .lift(1, 13, axes_to_input)
      .lower(13, 11, axes_to_attribute)
      .lower(11, 1, output_axes_from_front);
  list.add("Flatten", {1, 9, 11, 13, 21, 23, 24, 25})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::all)
      .attribute("axis", AttributeKind::int_)
      .infer(infer_flatten)
      .views(whole_input)
      .lower(11, 1, axes_from_front);
}

}  // namespace tenon::ops
