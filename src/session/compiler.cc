#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/block_storage.h"
#include "base/fail.h"
#include "ir/visit.h"
#include "session/constant_uses.h"
#include "session/device_copies.h"
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
    if (provider.device()) return;  // what comes and goes is a tenon.Copy
    for (const ir::Value* value : node.inputs()) {
      if (value && !value->is_fixed()) read(*value, provider.name(), provider.memory());
    }
    for (const ir::Value* value : node.outputs()) {
      if (value) makers_[value] = &provider;
    }
  }
  void add_copy(const ir::Node& node, Step::Copy direction, std::string_view device) {
    const bool to_device = direction == Step::Copy::to_device;
    const std::string_view host = "host";
    placement_.copies.push_back(
        {to_device ? node.input(0) : node.output(0), to_device ? host : device, to_device ? device : host});
  }
  // What stays on the device is not copied after all.
  void drop_copy(const ir::Value& value) {
    std::erase_if(placement_.copies, [&](const auto& copy) { return copy.value == &value; });
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
  const DevicePlacement* devices;  // null: all is on the host
  int& programs;                   // so far, this one and subgraphs included
  Compiler* outer = nullptr;
  std::unique_ptr<Program> program{new Program};
  std::unordered_map<const ir::Value*, int> slots{}, device_slots{};  // constants may be in both memories
  std::vector<std::pair<int, const ir::Value*>> constant_slots{};

  int slot_of(const ir::Value* value, bool on_device = false) {
    if (!value) return -1;
    auto& known = on_device && value->is_fixed() ? device_slots : slots;
    auto found = known.find(value);
    if (found != known.end()) return found->second;
    int slot = program->slot_count_++;
    known.emplace(value, slot);
    program->on_device_.push_back(on_device);
    if (&value->graph() != &graph) {
      TENON_CHECK(outer);
      int outer_slot = outer->slot_of(value, on_device);
      program->captures_.push_back({outer_slot, slot});
    } else if (value->constant()) {
      if (on_device) program->device_constants_.emplace(slot, program->device_->upload(value->constant()->tensor));
      constant_slots.emplace_back(slot, value);
    }
    return slot;
  }

  std::unique_ptr<Program> compile() {
    program->index_ = programs++;
    for (const Provider* provider : providers) {
      if (devices && provider->device()) program->device_ = provider->device();
    }
    for (const ir::Value* value : graph.inputs()) {
      program->input_slots_.push_back(slot_of(value));
      program->device_inputs_.push_back(may_stay(*value));
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
      program->device_outputs_.push_back(value->producer() && is_copy(*value->producer()) && value->users().empty() &&
                                         std::ranges::count(graph.outputs(), value) == 1);
      if (!outer && !program->device_) copies.add_output(*value);
    }
    for (const auto& [slot, value] : constant_slots) program->constants_.emplace_back(slot, value->constant()->tensor);
    return std::move(program);
  }

  std::string_view device_name() const {
    for (const Provider* provider : providers) {
      if (provider->device()) return provider->name();
    }
    return "host";
  }

  bool is_copy(const ir::Node& node) const { return devices && devices->is_copy(node); }
  // Whether the node has no need of an input's content on the host.
  bool leaves_on_device(const ir::Node& node, const ir::Value* input) const {
    if (is_copy(node)) return true;
    for (size_t i = 0; i < node.input_count(); ++i) {
      if (node.input(i) == input && !reads_shape_only(node, i)) return false;
    }
    return true;
  }

  // Whether nobody needs its content on the host.
  bool may_stay(const ir::Value& value) const {
    return std::ranges::all_of(value.users(), [&](const ir::Node* user) { return leaves_on_device(*user, &value); }) &&
           std::ranges::find(graph.outputs(), &value) == graph.outputs().end();
  }

  // Which outputs of a body stay on the device: those that come back to it, or that an If gives out to the device.
  void keep_outputs(const ir::Node& node, const ir::Graph& subgraph, Program& body, const Step& step) {
    const bool is_if = is_control_flow(node, "If");
    body.kept_outputs_.resize(subgraph.outputs().size());
    for (size_t i = 0; i < subgraph.outputs().size(); ++i) {
      const std::optional<size_t> input = carried_input(node, i);
      if (!body.gives_on_device(i) || !(is_if || (input && body.takes_on_device(*input)))) continue;
      const size_t output = i - (is_control_flow(node, "Loop") ? 1 : 0);
      const bool stays_outside = output >= step.outputs_may_stay.size() || step.outputs_may_stay[output];
      if (is_if && !stays_outside) continue;
      body.kept_outputs_[i] = true;
      if (stays_outside) copies.drop_copy(*subgraph.outputs()[i]);
    }
  }

  // Whether what a copy to the device reads is there already, whatever a node's bodies do.
  static bool is_kept(const ir::Value& value, const std::vector<Step>& steps) {
    const ir::Node* maker = value.producer();
    if (!maker || !ir::has_subgraphs(*maker)) return false;
    const auto step = std::ranges::find(steps, maker, &Step::node);
    if (step == steps.end()) return false;  // of an outer graph
    const size_t output = std::ranges::find(maker->outputs(), &value) - maker->outputs().begin();
    const size_t of_body = output + (is_control_flow(*maker, "Loop") ? 1 : 0);
    return std::ranges::all_of(step->subgraphs, [&](const auto& body) { return body->keeps_on_device(of_body); });
  }

  const Provider& place(const ir::Node& node, Step& step) {
    std::vector<std::pair<std::string, std::string>> declined;
    std::string reasons;
    const std::string reason_for_host = devices ? devices->reason_for_host(node) : "";
    for (const Provider* provider : providers) {
      if (devices && !devices->allows(*provider, node)) continue;
      Claim claim = provider->device() && !reason_for_host.empty() ? Claim::no(reason_for_host) : provider->claim(node);
      if (claim.accepted) {
        if (!is_copy(node)) placement.nodes.push_back({&node, provider->name(), claim.text, std::move(declined)});
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
    step.on_device = provider.device() != nullptr;
    if (is_copy(node)) {
      step.copy = node.string_attribute("to", "") == "host" ? Step::Copy::to_host : Step::Copy::to_device;
      const bool crosses = step.copy == Step::Copy::to_host || !is_kept(*node.input(0), program->steps_);
      if (crosses) copies.add_copy(node, step.copy, device_name());
    } else {
      copies.add(node, provider);
    }
    for (size_t i = 0; i < node.input_count(); ++i) {
      const ir::Value* value = node.input(i);
      const bool there = step.copy == Step::Copy::to_host || (step.on_device && !provider.reads_on_host(node, i));
      step.inputs.push_back(slot_of(value, there));
      step.device_inputs.push_back(value && program->is_on_device(step.inputs.back()));
      step.input_types.push_back(value ? value->type.element : ElementType::undefined);
    }
    if (ir::has_subgraphs(node)) {
      for (const ir::Value* value : node.outputs()) step.outputs_may_stay.push_back(!value || may_stay(*value));
    }
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        Compiler inner{subgraph,  providers, threads, precision, placement, copies,
                       constants, packed,    devices, programs,  this};
        step.subgraphs.push_back(inner.compile());
        keep_outputs(node, subgraph, *step.subgraphs.back(), step);
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
    if (step.on_device) step.host_kernel = make_host_kernel(node, known);
    constants.add(node, info);
    for (const ir::Value* value : node.outputs())
      step.outputs.push_back(slot_of(value, step.on_device || step.copy == Step::Copy::to_device));
    return step;
  }

  // For steps on the device whose results a plan may have to know: those that compute little.
  std::unique_ptr<Kernel> make_host_kernel(const ir::Node& node, std::span<const Tensor* const> known) const {
    constexpr int64_t much = 4096;
    if (std::ranges::any_of(known, [](const Tensor* tensor) { return tensor && tensor->elements() > much; }))
      return nullptr;
    for (const Provider* provider : providers) {
      if (provider->device() || !provider->claim(node).accepted) continue;
      PackedConstants unpacked([](const auto&) { return false; });
      return provider->compile(NodeInfo(node, known, unpacked, threads, Precision::full));
    }
    return nullptr;
  }
};

std::unique_ptr<Program> Program::compile(ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, Placement& placement, MemoryUse memory,
                                          const PrecisionChoice& precision, PackedArchive* archive,
                                          const DevicePlacement* devices) {
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
      Compiler{graph, providers, threads, precision, placement, list, constants, packed, devices, programs}.compile();
  program->program_count_ = programs;
  program->packed_bytes_ = static_cast<int64_t>(packed.bytes());
  return program;
}

}  // namespace tenon
