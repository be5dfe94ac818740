#include "ops/adapters.h"

#include <algorithm>

namespace tenon::ops {

Tensor int64_vector(const std::vector<int64_t>& numbers) {
  return Tensor(Shape{static_cast<int64_t>(numbers.size())}, std::span<const int64_t>(numbers));
}

ir::Value& add_node_before(ir::Node& at, std::string op, std::initializer_list<ir::Value*> inputs,
                           std::string_view output_name, std::vector<ir::Attribute> attributes) {
  ir::Node& node = at.graph().add_node(std::move(op), "", &at);
  for (ir::Value* input : inputs) node.add_input(input);
  node.attributes = std::move(attributes);
  ir::Value& output = at.graph().add_value(std::string(output_name), /*fresh=*/true);
  node.add_output(&output);
  return output;
}

void ints_attribute_to_input(ir::Node& node, std::string_view attribute, size_t input) {
  if (!node.attribute(attribute)) return;
  node.set_input(input, &node.graph().add_constant(int64_vector(node.ints_attribute(attribute)), attribute));
  node.remove_attribute(attribute);
}

std::string ints_input_to_attribute(ir::Node& node, size_t input, std::string_view attribute) {
  const ir::Value* value = node.input(input);
  if (!value) return {};
  if (!value->is_fixed()) return "its " + std::string(attribute) + " are computed, older versions take constants only";
  std::vector<int64_t> numbers;
  const Tensor& tensor = value->constant()->tensor;
  if (tensor.type() == ElementType::int32)
    numbers.assign(tensor.data<int32_t>().begin(), tensor.data<int32_t>().end());
  else
    numbers.assign(tensor.data<int64_t>().begin(), tensor.data<int64_t>().end());
  node.set_attribute(ir::Attribute(std::string(attribute), std::move(numbers)));
  if (input + 1 == node.input_count())
    node.remove_trailing_inputs(input);
  else
    node.set_input(input, nullptr);
  return {};
}

namespace {

std::string count_from_front(ir::Node& node, const ir::Value* counted) {
  const ir::Attribute *one = node.attribute("axis"), *many = node.attribute("axes");
  std::vector<int64_t> axes = many ? node.ints_attribute("axes") : std::vector<int64_t>{};
  if (one) axes.push_back(node.int_attribute("axis", 0));
  if (std::ranges::none_of(axes, [](int64_t axis) { return axis < 0; })) return {};
  if (!counted || !counted->type.shape) return "its axes count from the end, and the rank of the tensor is not known";
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(counted->type.shape->size()) : 0;
  if (one) {
    node.set_attribute({"axis", axes.back()});
    axes.pop_back();
  }
  if (many) node.set_attribute({"axes", std::move(axes)});
  return {};
}

}  // namespace

std::string axes_from_front(ir::Node& node) { return count_from_front(node, node.input(0)); }

std::string output_axes_from_front(ir::Node& node) { return count_from_front(node, node.output(0)); }

void drop_consumed_inputs(ir::Node& node) { node.remove_attribute("consumed_inputs"); }

void line_up_with_axis(ir::Node& node, size_t i, int64_t axis) {
  auto add_before = [](ir::Node& at, const char* op, std::initializer_list<ir::Value*> inputs,
                       std::vector<ir::Attribute> attributes = {}) {
    return &add_node_before(at, op, inputs, "lifted", std::move(attributes));
  };
  ir::Value* target = node.input(0);
  ir::Value* value = node.input(i);
  if (!target || !value) return;
  ir::Graph& graph = node.graph();
  if (target->type.shape && value->type.shape) {
    auto rank = static_cast<int64_t>(target->type.shape->size()), own = static_cast<int64_t>(value->type.shape->size());
    int64_t missing = (axis < 0 ? -axis : rank - axis) - own;
    if (missing <= 0) return;
    std::vector<int64_t> axes;
    for (int64_t k = 0; k < missing; ++k) axes.push_back(own + k);
    return node.set_input(i, add_before(node, "Unsqueeze", {value, &graph.add_constant(int64_vector(axes), "axes")}));
  }
  // The ranks are found out when the shapes are.
  auto number = [&](int64_t n) { return &graph.add_constant(Tensor(Shape{1}, {n}), "number"); };
  ir::Value* shape = add_before(node, "Shape", {value});
  ir::Value* end = number(-axis);
  if (axis >= 0) {
    ir::Value* rank = add_before(node, "Shape", {add_before(node, "Shape", {target})});
    end = add_before(node, "Sub", {rank, number(axis)});
  }
  ir::Value* missing = add_before(node, "Sub", {end, add_before(node, "Shape", {shape})});
  ir::Value* count = add_before(node, "Max", {missing, number(0)});
  std::vector<ir::Attribute> one;
  one.emplace_back("value", Tensor(Shape{1}, {int64_t{1}}));
  ir::Value* ones = add_before(node, "ConstantOfShape", {count}, std::move(one));
  std::vector<ir::Attribute> axis_0;
  axis_0.emplace_back("axis", int64_t{0});
  ir::Value* full = add_before(node, "Concat", {shape, ones}, std::move(axis_0));
  node.set_input(i, add_before(node, "Reshape", {value, full}));
}

void lift_limited_broadcast(ir::Node& node) {
  drop_consumed_inputs(node);
  bool broadcast = node.int_attribute("broadcast", 0) != 0;
  if (broadcast && node.attribute("axis")) line_up_with_axis(node, 1, node.int_attribute("axis", 0));
  node.remove_attribute("broadcast");
  node.remove_attribute("axis");
}

std::string limit_broadcast(ir::Node& node) {
  const ir::Value *a = node.input(0), *b = node.input(1);
  if (!a || !b || !a->type.shape || !b->type.shape) return "the shapes of its inputs are not known";
  const SymbolicShape &first = *a->type.shape, &second = *b->type.shape;
  const bool fits = second.size() <= first.size() &&
                    std::equal(second.begin(), second.end(), first.begin() + (first.size() - second.size()));
  if (!fits) return "before version 7 only the last axes of the second input could be left out";
  if (second.size() != first.size()) node.set_attribute({"broadcast", int64_t{1}});
  return {};
}

}  // namespace tenon::ops
