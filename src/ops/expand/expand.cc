#include <algorithm>

#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

SymbolicShape unknown_shape(size_t rank) {
  SymbolicShape shape;
  for (size_t axis = 0; axis < rank; ++axis) shape.push_back(Dim::unknown());
  return shape;
}

void infer_expand(Inference& i) {
  i.require_rank(1, 1);
  auto target = i.values(1);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  if (!target) {
    if (!i.has_shape(1) || !i.shape(1)[0].is_known()) return i.output(0, i.element(0), std::nullopt);
    int64_t rank = std::max<int64_t>(i.rank(0), i.shape(1)[0].value());
    if (rank > static_cast<int64_t>(most_values)) i.fail("a tensor cannot have {} axes", rank);
    return i.output(0, i.element(0), unknown_shape(static_cast<size_t>(rank)));
  }
  for (const Dim& dim : *target) {
    if (dim.is_known() && dim.value() < 0) i.fail("the new shape has size {}", dim.value());
  }
  SymbolicShape result = i.broadcast(i.shape(0), SymbolicShape(target->begin(), target->end()));
  auto values = i.followed_values(0);
  bool is_vector = result.size() == 1 && result[0].is_known() && result[0].value() <= static_cast<int64_t>(most_values);
  if (values && is_vector && values->size() == 1)
    values = SymbolicValues(static_cast<size_t>(result[0].value()), (*values)[0]);
  bool followed = values && (result.empty() || is_vector);
  i.output(0, i.element(0), std::move(result));
  if (followed) i.output_values(0, std::move(*values));
}

void infer_tile(Inference& i) {
  i.require_rank(1, 1);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  auto repeats = i.values(1);
  if (!repeats) return i.output(0, i.element(0), unknown_shape(i.shape(0).size()));
  if (repeats->size() != i.shape(0).size()) i.fail("there are {} repeats for rank {}", repeats->size(), i.rank(0));
  SymbolicShape result = i.shape(0);
  for (size_t axis = 0; axis < result.size(); ++axis) {
    const Dim& repeat = (*repeats)[axis];
    if (repeat.is_known() && repeat.value() < 0) i.fail("axis {} cannot be repeated {} times", axis, repeat.value());
    result[axis] = result[axis] * repeat;
  }
  i.output(0, i.element(0), std::move(result));
}

// Version 1 repeated one axis; both the axis and the count were scalars of the data's type.
void repeat_one_axis(ir::Node& node) {
  auto as_vector = [&](ir::Value* scalar, const char* name) {
    ir::Value& number = add_node_before(node, "Cast", {scalar}, name);
    number.producer()->set_attribute(ir::Attribute("to", static_cast<int64_t>(ElementType::int64)));
    return &add_node_before(node, "Reshape", {&number, &node.graph().add_constant(int64_vector({1}), "one")}, name);
  };
  ir::Value& shape = add_node_before(node, "Shape", {node.input(0)}, "shape");
  ir::Value& rank = add_node_before(node, "Shape", {&shape}, "rank");
  ir::Value& ones = add_node_before(node, "ConstantOfShape", {&rank}, "ones");
  ones.producer()->set_attribute(ir::Attribute("value", int64_vector({1})));
  ir::Value* axis = as_vector(node.input(2), "axis");
  ir::Value* tiles = as_vector(node.input(1), "tiles");
  ir::Value& repeats = add_node_before(node, "ScatterElements", {&ones, axis, tiles}, "repeats");
  node.remove_trailing_inputs(1);
  node.set_input(1, &repeats);
}

}  // namespace

void define_expand(OperatorList& list) {
  constexpr TypeSet shape_type{ElementType::int64};
  list.add("Expand", {8, 13})
      .input("input", "T")
      .input("shape", shape_type)
      .output("output", "T")
      .types("T", types::movable)
      .infer(infer_expand)
      .views(whole_input_of_same_size);
  list.add("Tile", {1, 6, 13})
      .input("input", "T")
      .input("repeats", shape_type)
      .output("output", "T")
      .types("T", types::movable)
      .infer(infer_tile)
      .views(whole_input_of_same_size)
      .lift(1, 6, repeat_one_axis);
}

}  // namespace tenon::ops
