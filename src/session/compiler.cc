#include <unordered_map>

#include "base/fail.h"
#include "session/plan_cache.h"
#include "session/program.h"

namespace tenon {

struct Program::Compiler {
  const ir::Graph& graph;
  std::span<const Provider* const> providers;
  ThreadPool& threads;
  std::vector<NodePlacement>& placement;
  Compiler* outer = nullptr;
  std::unique_ptr<Program> program{new Program};
  std::unordered_map<const ir::Value*, int> slots{};

  int slot_of(const ir::Value* value) {
    if (!value) return -1;
    auto found = slots.find(value);
    if (found != slots.end()) return found->second;
    int slot = program->slot_count_++;
    slots.emplace(value, slot);
    if (&value->graph() != &graph) {
      TENON_CHECK(outer);
      int outer_slot = outer->slot_of(value);
      program->captures_.push_back({outer_slot, slot});
    } else if (value->constant()) {
      program->constants_.emplace_back(slot, value->constant()->tensor);
    }
    return slot;
  }

  std::unique_ptr<Program> compile() {
    for (const ir::Value* value : graph.inputs()) program->input_slots_.push_back(slot_of(value));
    for (const ir::Node& node : graph.nodes()) {
      try {
        program->steps_.push_back(compile_node(node));
      } catch (Error& error) {
        throw error.at_node(node.describe_here());
      }
    }
    for (const ir::Value* value : graph.outputs()) program->output_slots_.push_back(slot_of(value));
    return std::move(program);
  }

  const Provider& place(const ir::Node& node) {
    NodePlacement entry;
    entry.node = node.describe();
    entry.op_type = node.op_type;
    std::string reasons;
    for (const Provider* provider : providers) {
      Claim claim = provider->claim(node);
      if (claim.accepted) {
        entry.provider = provider->name();
        entry.kernel = claim.text;
        placement.push_back(std::move(entry));
        return *provider;
      }
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", provider->name(), claim.text);
      entry.declined.emplace_back(provider->name(), std::move(claim.text));
    }
    fail(ErrorCode::unsupported, "no provider runs this node ({})", reasons);
  }

  Step compile_node(const ir::Node& node) {
    Step step;
    step.node = &node;
    step.op = ops::operators().find(node.domain, node.op_type);
    const Provider& provider = place(node);
    std::vector<const Tensor*> constants;
    for (const ir::Value* value : node.inputs()) {
      step.inputs.push_back(slot_of(value));
      constants.push_back(value && value->is_fixed() ? &value->constant()->tensor : nullptr);
    }
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        Compiler inner{subgraph, providers, threads, placement, this};
        step.subgraphs.push_back(inner.compile());
      });
    }
    step.kernel = provider.compile(NodeInfo(node, constants, threads));
    for (const ir::Value* value : node.outputs()) step.outputs.push_back(slot_of(value));
    return step;
  }
};

std::unique_ptr<Program> Program::compile(const ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, std::vector<NodePlacement>& placement) {
  return Compiler{graph, providers, threads, placement}.compile();
}

}  // namespace tenon
