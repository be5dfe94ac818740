#include <fmt/core.h>

#include "ops/decomposition.h"

namespace tenon::ops {
namespace {

using ir::Type;
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
  auto add = [&](const char* op, const std::vector<ir::Value*>& inputs) {
    return d.add_output(d.add_node(op, inputs));
  };
  std::vector<ir::Value*> inputs{add("SequenceLength", {node.input(0)}), nullptr};
  for (ir::Value* output : node.outputs()) {
    ir::Node& empty = d.add_node("SequenceEmpty", {});
    empty.set_attribute({"dtype", static_cast<int64_t>(output->type.inner->element)});
    inputs.push_back(d.add_output(empty));
  }
  ir::Node& loop = d.add_node("Loop", inputs);
  d.add_graph(loop, "body", [&](ir::Graph& graph) {
    ir::Value* position = d.add_graph_input("position", Type::tensor(ElementType::int64, SymbolicShape{}));
    ir::Value* condition = d.add_graph_input("condition", Type::tensor(ElementType::boolean, SymbolicShape{}));
    std::vector<ir::Value*> items;
    for (ir::Value* value : node.inputs()) {
      const bool is_sequence = value->type.kind == Type::Kind::sequence;
      items.push_back(is_sequence ? add("SequenceAt", {value, position}) : value);
    }
    std::vector<ir::Value*> results = d.add_nodes_of(*body, items);
    graph.add_output(*add("Identity", {condition}));
    for (size_t i = 0; i < node.output_count(); ++i) {
      ElementType element = node.output(i)->type.inner->element;
      ir::Value* so_far = d.add_graph_input("results", Type::sequence(Type::tensor(element)));
      graph.add_output(*add("SequenceInsert", {so_far, results[i]}));
    }
  });
  for (size_t i = 0; i < node.output_count(); ++i) d.output(i, d.add_output(loop));
}

}  // namespace tenon::ops
