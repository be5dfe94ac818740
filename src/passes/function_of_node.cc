#include "passes/function_of_node.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/visit.h"
#include "ops/decomposition.h"
#include "passes/infer.h"

namespace tenon::passes {
namespace {

// Functions have no initializers.
void constants_to_nodes(ir::Graph& body) {
  const std::vector<ir::Value*> initializers = body.initializers();
  for (ir::Value* value : initializers) {
    ir::ConstantPtr constant = value->constant();
    body.remove_initializer(*value);
    if (value->users().empty()) continue;
    ir::Node& node = body.add_node("Constant", "", body.nodes().empty() ? nullptr : &body.nodes().front());
    node.set_attribute(ir::Attribute("value", constant->tensor));
    node.add_output(value);
  }
}

bool can_be_called(const ir::Node& node) {
  return !ir::has_subgraphs(node) &&
         std::ranges::none_of(node.outputs(), [](const ir::Value* value) { return !value; });
}

}  // namespace

std::unique_ptr<ir::Function> function_of_node(const ir::Node& node, const std::function<void(ir::Graph&)>& prepare) {
  if (!can_be_called(node)) return nullptr;
  auto function = std::make_unique<ir::Function>();
  function->body = std::make_unique<ir::Graph>();
  ir::Graph& body = *function->body;
  ir::Node& inner = body.add_node(node.op_type, node.domain);
  inner.name = node.op_type;
  std::map<const ir::Value*, ir::Value*> twins;
  for (const ir::Attribute& attribute : node.attributes) inner.attributes.push_back(ir::clone(attribute, twins));
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.input(i)) continue;
    ir::Value& value = body.add_value(fmt::format("input_{}", i));
    value.type = node.input(i)->type;
    body.add_input(value);
    inner.set_input(i, &value);
  }
  for (size_t i = 0; i < node.output_count(); ++i) {
    ir::Value& value = body.add_value(fmt::format("output_{}", i));
    value.type = node.output(i)->type;
    inner.add_output(&value);
    body.add_output(value);
  }
  if (!ops::decompose(inner).empty()) return nullptr;
  infer_types(body);
  prepare(body);
  constants_to_nodes(body);
  for (ir::Value& value : body.values()) value.value_info_position = -1;
  for (ir::Node& added : body.nodes()) added.name.clear();
  return function;
}

void call_function(ir::Node& node, const ir::Function& function) {
  std::vector<ir::Value*> inputs;
  for (ir::Value* value : node.inputs()) {
    if (value) inputs.push_back(value);
  }
  node.remove_trailing_inputs(0);
  for (ir::Value* value : inputs) node.add_input(value);
  node.attributes.clear();
  node.op_type = function.name;
  node.domain = function.domain;
}

}  // namespace tenon::passes
