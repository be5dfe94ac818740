#include <fmt/core.h>

#include "ops/decomposition.h"

namespace tenon::ops {
namespace {

using ir::Type;
using Twins = std::map<const ir::Value*, ir::Value*>;

// The nodes of `from`, whose inputs have twins already, at the end of `to`.
void copy_nodes(const ir::Graph& from, ir::Graph& to, Twins& twins) {
  for (const ir::Value& value : from.values()) {
    if (twins.count(&value)) continue;
    ir::Value& twin = to.add_value(value.name, /*fresh=*/true);
    twin.type = value.type;
    if (value.constant()) to.set_initializer(twin, value.constant());
    if (value.sparse_constant()) to.set_initializer(twin, value.sparse_constant());
    twins[&value] = &twin;
  }
  auto twin_of = [&](ir::Value* value) { return value && twins.count(value) ? twins[value] : value; };
  for (const ir::Node& node : from.nodes()) {
    ir::Node& copy = to.add_node(node.op_type, node.domain);
    copy.name = node.name;
    copy.origin = node.origin;
    for (size_t i = 0; i < node.input_count(); ++i) copy.set_input(i, twin_of(node.input(i)));
    for (ir::Value* value : node.outputs()) copy.add_output(twin_of(value));
    for (const ir::Attribute& attribute : node.attributes) copy.attributes.push_back(ir::clone(attribute, twins));
    adopt_subgraphs(copy);
  }
}

ir::Value* add_inside(ir::Graph& graph, const ir::Node& node, const char* op,
                      std::initializer_list<ir::Value*> inputs) {
  ir::Node& added = graph.add_node(op);
  added.name = node.name;
  added.origin = node.origin;
  for (ir::Value* value : inputs) added.add_input(value);
  ir::Value& output = graph.add_value(op, /*fresh=*/true);
  added.add_output(&output);
  return &output;
}

ir::Value& add_input(ir::Graph& graph, const char* name, Type type) {
  ir::Value& value = graph.add_value(name, /*fresh=*/true);
  value.type = std::move(type);
  graph.add_input(value);
  return value;
}

// What the loop needs to know.
void check(const Decomposition& d, const ir::Graph* body) {
  const ir::Node& node = d.node();
  if (!body || body->inputs().size() != node.input_count() || body->outputs().size() < node.output_count())
    d.give_up("its body does not have the inputs and outputs of the node");
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.input(i) || !node.input(i)->type.known()) d.give_up(fmt::format("the type of input {} is not known", i));
  }
  for (size_t i = 0; i < node.output_count(); ++i) {
    const ir::Value* output = node.output(i);
    if (!output || !output->type.inner || output->type.inner->element == ElementType::undefined)
      d.give_up(fmt::format("the element type of output {} is not known", i));
  }
}

}  // namespace

// A loop over the positions of the first sequence, which carries the results so far.
void decompose_sequence_map(Decomposition& d) {
  const ir::Node& node = d.node();
  const ir::Graph* body = node.graph_attribute("body");
  check(d, body);
  auto loop = std::make_unique<ir::Graph>();
  loop->name = body->name;
  ir::Value& position = add_input(*loop, "position", Type::tensor(ElementType::int64, SymbolicShape{}));
  ir::Value& condition = add_input(*loop, "condition", Type::tensor(ElementType::boolean, SymbolicShape{}));

  Twins twins;
  for (size_t i = 0; i < node.input_count(); ++i) {
    ir::Value* value = node.input(i);
    bool is_sequence = value->type.kind == Type::Kind::sequence;
    twins[body->inputs()[i]] = is_sequence ? add_inside(*loop, node, "SequenceAt", {value, &position}) : value;
  }
  copy_nodes(*body, *loop, twins);
  loop->add_output(*add_inside(*loop, node, "Identity", {&condition}));

  std::vector<ir::Value*> inputs{d.add_output(d.add_node("SequenceLength", {node.input(0)})), nullptr};
  for (size_t i = 0; i < node.output_count(); ++i) {
    ElementType element = node.output(i)->type.inner->element;
    ir::Value& results = add_input(*loop, "results", Type::sequence(Type::tensor(element)));
    ir::Value* result = body->outputs()[i];
    if (twins.count(result)) result = twins[result];
    loop->add_output(*add_inside(*loop, node, "SequenceInsert", {&results, result}));
    ir::Node& empty = d.add_node("SequenceEmpty", {});
    empty.set_attribute({"dtype", static_cast<int64_t>(element)});
    inputs.push_back(d.add_output(empty));
  }
  ir::Node& added = d.add_node("Loop", inputs);
  added.set_attribute({"body", std::move(loop)});
  for (size_t i = 0; i < node.output_count(); ++i) d.output(i, d.add_output(added));
}

}  // namespace tenon::ops
