#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/block_storage.h"
#include "base/fail.h"
#include "session/constant_uses.h"
#include "session/packed_archive.h"
#include "session/placement.h"
#include "session/program.h"

namespace tenon {

namespace {

// Finds the tensors that have to be copied between providers, each once per reader.
class CopyList {
 public:
  explicit CopyList(Placement& placement) : placement_(placement) {}

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
    if (!seen_.insert({&value, reader}).second) return;
    placement_.copies.push_back({&value, maker, reader});
  }

  Placement& placement_;
  std::unordered_map<const ir::Value*, const Provider*> makers_;
  std::set<std::pair<const ir::Value*, std::string_view>> seen_;
};

}  // namespace

struct Program::Compiler {
  const ir::Graph& graph;
  std::span<const Provider* const> providers;
  ThreadPool& threads;
  const PrecisionChoice& precision;
  Placement& placement;
  CopyList& copies;
  ConstantUses& constants;
  PackedConstants& packed;
  int& programs;  // so far, this one and subgraphs included
  Compiler* outer = nullptr;
  std::unique_ptr<Program> program{new Program};
  std::unordered_map<const ir::Value*, int> slots{};
  std::vector<std::pair<int, const ir::Value*>> constant_slots{};

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
      constant_slots.emplace_back(slot, value);
    }
    return slot;
  }

  std::unique_ptr<Program> compile() {
    program->index_ = programs++;
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
    for (const auto& [slot, value] : constant_slots) program->constants_.emplace_back(slot, value->constant()->tensor);
    return std::move(program);
  }

  const Provider& place(const ir::Node& node, Step& step) {
    std::vector<std::pair<std::string, std::string>> declined;
    std::string reasons;
    for (const Provider* provider : providers) {
      Claim claim = provider->claim(node);
      if (claim.accepted) {
        placement.nodes.push_back({&node, provider->name(), claim.text, std::move(declined)});
        step.provider = provider->name();
        step.kernel_name = std::move(claim.text);
        return *provider;
      }
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", provider->name(), claim.text);
      declined.emplace_back(provider->name(), std::move(claim.text));
    }
    fail(ErrorCode::unsupported, "no provider runs this node ({})", reasons);
  }

  Step compile_node(const ir::Node& node) {
    Step step;
    step.node = &node;
    step.op = ops::operator_of(node);
    const Provider& provider = place(node, step);
    const size_t placed = placement.nodes.size() - 1;
    copies.add(node, provider);
    for (const ir::Value* value : node.inputs()) {
      step.inputs.push_back(slot_of(value));
      step.input_types.push_back(value ? value->type.element : ElementType::undefined);
    }
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        Compiler inner{subgraph, providers, threads, precision, placement, copies, constants, packed, programs, this};
        step.subgraphs.push_back(inner.compile());
      });
    }
    const std::vector<const Tensor*> known = constant_inputs(node);
    const NodeInfo info(node, known, packed, threads, precision.of(node));
    step.kernel = provider.compile(info);
    if (const std::string_view type = step.kernel->rounds_to(); !type.empty()) {
      step.kernel_name += fmt::format(", {}", type);
      placement.nodes[placed].kernel = step.kernel_name;
      ++placement.rounded_nodes;
    }
    constants.add(node, info);
    for (const ir::Value* value : node.outputs()) step.outputs.push_back(slot_of(value));
    return step;
  }
};

std::unique_ptr<Program> Program::compile(ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, Placement& placement, MemoryUse memory,
                                          const PrecisionChoice& precision, PackedArchive* archive) {
  CopyList list(placement);
  ConstantUses constants(graph);
  if (memory == MemoryUse::low) constants.ask_kernels(graph, providers, threads, precision);
  BlockStorage storage;
  PackedConstants packed(
      [&](const auto& key) {
        return (memory == MemoryUse::normal || constants.are_freed_by(key)) && (!archive || archive->has(key));
      },
      [&](const auto& key) -> PackedStorage& { return archive ? archive->storage(key) : storage; });
  int programs = 0;
  std::unique_ptr<Program> program =
      Compiler{graph, providers, threads, precision, placement, list, constants, packed, programs}.compile();
  program->program_count_ = programs;
  program->packed_bytes_ = static_cast<int64_t>(packed.bytes());
  return program;
}

}  // namespace tenon
