#include "session/evaluate.h"

#include "session/placement.h"
#include "session/plan_cache.h"
#include "session/program.h"

namespace tenon {

std::vector<Value> evaluate(const ir::Node& node, std::span<const Provider* const> providers, ThreadPool& threads,
                            Allocator& allocator) {
  ir::Graph graph;
  ir::Node& copy = graph.add_node(node.op_type, node.domain);
  copy.name = node.name;
  copy.origin = node.origin;
  copy.custom_operator = node.custom_operator;
  std::map<const ir::Value*, ir::Value*> twins;
  for (const ir::Attribute& attribute : node.attributes) copy.attributes.push_back(ir::clone(attribute, twins));
  for (size_t i = 0; i < node.input_count(); ++i) {
    const ir::Value* value = node.input(i);
    if (!value) continue;
    ir::Value& twin = graph.add_value(value->name);
    twin.type = value->type;
    graph.set_initializer(twin, value->constant());
    copy.set_input(i, &twin);
  }
  std::vector<bool> wanted;
  for (const ir::Value* value : node.outputs()) {
    ir::Value* twin = value ? &graph.add_value(value->name) : nullptr;
    copy.add_output(twin);
    if (!twin) continue;
    twin->type = value->type;
    graph.add_output(*twin);
    wanted.push_back(true);
  }
  Placement placement;
  std::unique_ptr<Program> program = Program::compile(graph, providers, threads, placement);
  PlanCaches plans(*program);
  const RunState state{threads, allocator, plans};
  std::vector<Value> results = program->run(state, {}, wanted, {});
  // Back to the node's numbering, with nothing where an output is left out.
  std::vector<Value> outputs(node.output_count());
  size_t next = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.output(i)) outputs[i] = std::move(results[next++]);
  }
  return outputs;
}

}  // namespace tenon
