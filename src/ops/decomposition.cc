#include "ops/decomposition.h"

#include "base/fail.h"
#include "ops/adapters.h"
#include "ops/dispatch.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

struct GivenUp {
  std::string reason;
};

}  // namespace

ElementType Decomposition::element(size_t i) const {
  const ir::Value* value = input(i);
  if (!value || value->type.element == ElementType::undefined)
    give_up(fmt::format("the element type of input {} is not known", i));
  return value->type.element;
}

int Decomposition::rank(size_t i) const {
  const ir::Value* value = input(i);
  if (!value || !value->type.shape) give_up(fmt::format("the rank of input {} is not known", i));
  return static_cast<int>(value->type.shape->size());
}

std::vector<ir::Value*> Decomposition::add_with_outputs(std::string op, const std::vector<ir::Value*>& inputs,
                                                        size_t outputs, std::initializer_list<Setting> attributes) {
  ir::Graph& graph = node_.graph();
  ir::Node& added = graph.add_node(std::move(op), "", &node_);
  added_.push_back(&added);
  added.name = node_.name;
  added.origin = node_.origin;
  for (ir::Value* value : inputs) added.add_input(value);
  for (const Setting& setting : attributes) {
    std::visit([&](const auto& value) { added.set_attribute(ir::Attribute(setting.name, value)); }, setting.value);
  }
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < outputs; ++i) {
    values.push_back(&graph.add_value(node_.name + "/" + added.op_type, /*fresh=*/true));
    added.add_output(values.back());
  }
  return values;
}

ir::Value* Decomposition::add(std::string op, const std::vector<ir::Value*>& inputs,
                              std::initializer_list<Setting> attributes) {
  return add_with_outputs(std::move(op), inputs, 1, attributes)[0];
}

ir::Value* Decomposition::ints(const std::vector<int64_t>& numbers) {
  return &node_.graph().add_constant(int64_vector(numbers), node_.name + "/ints");
}

ir::Value* Decomposition::number(double value, ElementType type) {
  Tensor scalar(type, Shape{});
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, [&]<typename T>() { scalar.mutable_data<T>()[0] = static_cast<T>(value); });
  return &node_.graph().add_constant(std::move(scalar), node_.name + "/number");
}

void Decomposition::give_up(std::string reason) const { throw GivenUp{std::move(reason)}; }

void Decomposition::finish() {
  ir::Graph& graph = node_.graph();
  // An Identity keeps the name of the node's output, which the graph's outputs may use.
  std::vector<std::pair<ir::Node*, ir::Value*>> outputs;
  for (size_t i = 0; i < results_.size(); ++i) {
    ir::Value* old = node_.output(i);
    if (!old) continue;
    TENON_CHECK(results_[i]);
    ir::Node& alias = graph.add_node("Identity", "", &node_);
    alias.name = node_.name;
    alias.origin = node_.origin;
    alias.add_input(results_[i]);
    outputs.emplace_back(&alias, old);
  }
  node_.remove_trailing_outputs(0);
  graph.remove_node(node_);
  for (auto& [alias, old] : outputs) alias->add_output(old);
}

void Decomposition::undo() {
  while (!added_.empty()) {
    node_.graph().remove_node(*added_.back());
    added_.pop_back();
  }
}

std::string decompose(ir::Node& node) {
  const Operator* op = operators().find(node.domain, node.op_type);
  if (!op || !op->decomposition) return "it has no decomposition";
  Decomposition decomposition(node);
  try {
    op->decomposition(decomposition);
  } catch (const GivenUp& why) {
    decomposition.undo();
    return why.reason;
  }
  decomposition.finish();
  return {};
}

}  // namespace tenon::ops
