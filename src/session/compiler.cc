#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "ops/cost.h"
#include "session/plan_cache.h"
#include "session/program.h"

namespace tenon {

namespace {

// Finds the tensors that have to be copied between providers, each once per reader.
class CopyList {
 public:
  explicit CopyList(std::vector<ValueCopy>& copies) : copies_(copies) {}

  void add(const ir::Node& node, const Provider& provider) {
    for (const ir::Value* value : node.inputs()) {
      if (value && !value->is_fixed()) read(*value, provider.name(), provider.memory());
    }
    for (const ir::Value* value : node.outputs()) {
      if (value) makers_[value] = &provider;
    }
  }
  // A result of the model, which the caller reads on the host.
  void add_output(const ir::Value& value) { read(value, "host", "host"); }

 private:
  void read(const ir::Value& value, std::string_view reader, std::string_view memory) {
    auto found = makers_.find(&value);
    const std::string_view maker = found == makers_.end() ? "host" : found->second->name();
    if (memory == (found == makers_.end() ? "host" : found->second->memory())) return;
    if (!seen_.insert({&value, std::string(reader)}).second) return;
    ValueCopy copy{value.name, std::string(maker), std::string(reader), ""};
    if (value.type.is_tensor() && value.type.shape && value.type.element != ElementType::string)
      copy.bytes = ops::bytes_of({value.type.element, &*value.type.shape}).to_string();
    copies_.push_back(std::move(copy));
  }

  std::vector<ValueCopy>& copies_;
  std::unordered_map<const ir::Value*, const Provider*> makers_;
  std::set<std::pair<const ir::Value*, std::string>> seen_;
};

}  // namespace

struct Program::Compiler {
  const ir::Graph& graph;
  std::span<const Provider* const> providers;
  ThreadPool& threads;
  std::vector<NodePlacement>& placement;
  CopyList& copies;
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
    for (const ir::Value* value : graph.inputs()) {
      program->input_slots_.push_back(slot_of(value));
      program->input_is_read_.push_back(!value->users().empty() ||
                                        std::ranges::find(graph.outputs(), value) != graph.outputs().end());
    }
    for (const ir::Node& node : graph.nodes()) {
      try {
        program->steps_.push_back(compile_node(node));
      } catch (Error& error) {
        throw error.at_node(node.describe_here());
      }
    }
    for (const ir::Value* value : graph.outputs()) {
      program->output_slots_.push_back(slot_of(value));
      if (!outer) copies.add_output(*value);
    }
    return std::move(program);
  }

  const Provider& place(const ir::Node& node) {
    NodePlacement entry;
    entry.node = node.describe();
    entry.op_type = node.op_type;
    if (std::optional<ops::Cost> cost = ops::cost_of(node)) {
      entry.flops = cost->flops.to_string();
      entry.bytes = cost->bytes.to_string();
    }
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
    step.op = ops::operator_of(node);
    const Provider& provider = place(node);
    copies.add(node, provider);
    std::vector<const Tensor*> constants;
    for (const ir::Value* value : node.inputs()) {
      step.inputs.push_back(slot_of(value));
      constants.push_back(value && value->is_fixed() ? &value->constant()->tensor : nullptr);
    }
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        Compiler inner{subgraph, providers, threads, placement, copies, this};
        step.subgraphs.push_back(inner.compile());
      });
    }
    step.kernel = provider.compile(NodeInfo(node, constants, threads));
    for (const ir::Value* value : node.outputs()) step.outputs.push_back(slot_of(value));
    return step;
  }
};

std::unique_ptr<Program> Program::compile(const ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, std::vector<NodePlacement>& placement,
                                          std::vector<ValueCopy>& copies) {
  CopyList list(copies);
  return Compiler{graph, providers, threads, placement, list}.compile();
}

}  // namespace tenon
