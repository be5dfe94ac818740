#include <algorithm>

#include "base/fail.h"
#include "ir/copy_nodes.h"
#include "ops/adapters.h"
#include "ops/dispatch.h"
#include "ops/known_attributes.h"
#include "passes/editor.h"

namespace tenon::passes {
namespace {

void set(ir::Node& node, std::initializer_list<ops::Setting> attributes) {
  for (const ops::Setting& setting : attributes) {
    std::visit([&](const auto& value) { node.set_attribute(ir::Attribute(setting.name, value)); }, setting.value);
  }
}

}  // namespace

ir::Node& Patch::start_node(std::string op, std::string domain, const std::vector<ir::Value*>& inputs) {
  ir::Node& node = at_.graph().add_node(std::move(op), std::move(domain), &at_);
  added_.push_back(&node);
  node.name = named_after_->name;
  node.origin = named_after_->origin;
  size_t count = inputs.size();
  while (count > 0 && !inputs[count - 1]) --count;
  for (size_t i = 0; i < count; ++i) node.set_input(i, inputs[i]);
  return node;
}

void Patch::finish_node(ir::Node& node) {
  for (ir::Value* value : node.outputs()) {
    if (value) unnamed_.insert(value);
  }
  editor_.infer(node);
}

void Patch::undo() {
  for (; !added_.empty(); added_.pop_back()) {
    for (const ir::Value* value : added_.back()->outputs()) editor_.facts_.erase(value);
    at_.graph().remove_node(*added_.back(), &editor_.bin_);
  }
  for (ir::Value* value : constants_) editor_.unread_.insert(value);
}

ir::Node& Patch::add_node(std::string op, const std::vector<ir::Value*>& inputs, Settings attributes, size_t outputs,
                          std::string domain) {
  ir::Node& node = start_node(std::move(op), std::move(domain), inputs);
  set(node, attributes);
  for (size_t i = 0; i < outputs; ++i)
    node.add_output(&at_.graph().add_value(node.name + "/" + node.op_type, /*fresh=*/true));
  finish_node(node);
  return node;
}

ir::Value* Patch::add(std::string op, const std::vector<ir::Value*>& inputs, Settings attributes, std::string domain) {
  return add_node(std::move(op), inputs, attributes, 1, std::move(domain)).output(0);
}

ir::Node& Patch::add_like(const ir::Node& like, const std::vector<ir::Value*>& inputs, Settings changed_attributes) {
  ir::Node& node = start_node(like.op_type, like.domain, inputs);
  node.overload = like.overload;
  node.custom_operator = like.custom_operator;
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : like.attributes) {
    attribute.for_each_graph([](const ir::Graph&) { fail(ErrorCode::internal, "a node with subgraphs is copied"); });
    node.attributes.push_back(ir::clone(attribute, none));
  }
  set(node, changed_attributes);
  for (const ir::Value* output : like.outputs()) {
    node.add_output(output ? &at_.graph().add_value(node.name + "/" + node.op_type, /*fresh=*/true) : nullptr);
  }
  finish_node(node);
  return node;
}

ir::Value* Patch::add_fused(std::string op, const ir::Node& like, const std::vector<ir::Value*>& inputs,
                            Settings more_attributes, std::string domain) {
  ir::Node& node = start_node(std::move(op), std::move(domain), inputs);
  ops::copy_known_attributes(like, node);
  set(node, more_attributes);
  node.add_output(&at_.graph().add_value(node.name + "/" + node.op_type, /*fresh=*/true));
  finish_node(node);
  return node.output(0);
}

ir::Node& Patch::add_copy(const ir::Node& original, std::map<const ir::Value*, ir::Value*>& values) {
  ir::Node& node = start_node(original.op_type, original.domain, {});
  copy_node_without_outputs(original, node, values);
  std::unordered_set<std::string_view> none;
  for (const ir::Attribute& attribute : node.attributes)
    attribute.for_each_graph([&](ir::Graph& subgraph) { editor_.index(subgraph, none); });
  for (const ir::Value* output : original.outputs()) {
    ir::Value* twin = output ? &at_.graph().add_value(output->name, /*fresh=*/true) : nullptr;
    node.add_output(twin);
    if (!twin) continue;
    ops::Fact fact = editor_.fact(*output);
    twin->type = fact.type;
    editor_.facts_[twin] = std::move(fact);
    unnamed_.insert(twin);
    values[output] = twin;
  }
  return node;
}

ir::Value* Patch::constant(Tensor tensor) {
  ir::Value& value = at_.graph().add_constant(std::move(tensor), named_after_->name + "/constant");
  constants_.push_back(&value);
  unnamed_.insert(&value);
  return &value;
}

ir::Value* Patch::ints(const std::vector<int64_t>& numbers) { return constant(ops::int64_vector(numbers)); }

ir::Value* Patch::number(double value, ElementType type) {
  Tensor scalar(type, Shape{});
  ops::dispatch<float, double, float16, bfloat16>(
      type, [&]<typename T>() { scalar.mutable_data<T>()[0] = static_cast<T>(value); });
  return constant(std::move(scalar));
}

void Patch::name_after(const ir::Node& node) { named_after_ = &node; }

void Patch::replace(ir::Value& old, ir::Value& by) {
  if (old.producer()) replaced_.push_back(old.producer());
  editor_.move_uses(old, by, unnamed_.erase(&by) != 0, record_);
}

}  // namespace tenon::passes
