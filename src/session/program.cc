#include "session/program.h"

#include <algorithm>
#include <stdexcept>

#include "base/fail.h"
#include "ops/check_types.h"

namespace tenon {

struct Program::Step {
  const ir::Node* node;
  const ops::Operator* op;
  std::unique_ptr<Kernel> kernel;
  SmallVector<int, 4> inputs;  // slots; -1 for what is left out
  SmallVector<int, 2> outputs;
  SmallVector<int, 4> last_uses;  // slots nobody reads after this step
  std::vector<std::unique_ptr<Program>> subgraphs;
};

Program::~Program() = default;

// The values of one run. A slot holds a value of its own or refers to one that lives elsewhere.
class Program::Frame {
 public:
  explicit Frame(const Program& program)
      : values_(static_cast<size_t>(program.slot_count_)), references_(static_cast<size_t>(program.slot_count_)) {
    for (const auto& [slot, value] : program.constants_) refer(slot, value);
  }
  void refer(int slot, const Value& value) { references_[static_cast<size_t>(slot)] = &value; }
  void hold(int slot, Value value) {
    values_[static_cast<size_t>(slot)] = std::move(value);
    references_[static_cast<size_t>(slot)] = &values_[static_cast<size_t>(slot)];
  }
  void drop(int slot) {
    values_[static_cast<size_t>(slot)] = Value();
    references_[static_cast<size_t>(slot)] = nullptr;
  }
  const Value* at(int slot) const { return slot < 0 ? nullptr : references_[static_cast<size_t>(slot)]; }
  // Memory of the caller for outputs, by slot; usually empty.
  std::vector<std::pair<int, Tensor>> destinations;

 private:
  std::vector<Value> values_;
  std::vector<const Value*> references_;
};

class Program::BoundSubgraph final : public Subgraph {
 public:
  BoundSubgraph(const Program& program, RunState& state, const Frame& outer)
      : program_(program), state_(state), outer_(outer) {}

  size_t input_count() const override { return program_.input_slots_.size(); }
  size_t output_count() const override { return program_.output_slots_.size(); }

  std::vector<Value> run(std::vector<Value> inputs) override {
    // A body without steps would never come to ask.
    state_.throw_if_cancelled();
    Frame frame(program_);
    for (const Capture& capture : program_.captures_) {
      if (const Value* value = outer_.at(capture.outer_slot)) frame.refer(capture.inner_slot, *value);
    }
    for (size_t i = 0; i < inputs.size() && i < program_.input_slots_.size(); ++i) {
      frame.hold(program_.input_slots_[i], std::move(inputs[i]));
    }
    program_.run_steps(state_, frame, nullptr);
    std::vector<Value> outputs;
    for (int slot : program_.output_slots_) {
      const Value* value = frame.at(slot);
      outputs.push_back(value ? *value : Value());
    }
    return outputs;
  }

 private:
  const Program& program_;
  RunState& state_;
  const Frame& outer_;
};

struct Program::Compiler {
  const ir::Graph& graph;
  std::span<const Provider* const> providers;
  ThreadPool& threads;
  std::vector<NodePlacement>& placement;
  Compiler* outer = nullptr;
  std::unique_ptr<Program> program{new Program};
  std::unordered_map<const ir::Value*, int> slots{};
  std::vector<int> step_captures{};  // outer slots that the subgraphs of the step being compiled read

  int slot_of(const ir::Value* value) {
    if (!value) return -1;
    auto found = slots.find(value);
    if (found != slots.end()) return found->second;
    int slot = program->slot_count_++;
    slots.emplace(value, slot);
    if (&value->graph() != &graph) {
      TENON_CHECK(outer);
      int outer_slot = outer->slot_of(value);
      outer->step_captures.push_back(outer_slot);
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
    find_last_uses();
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
    step_captures.clear();
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        Compiler inner{subgraph, providers, threads, placement, this};
        step.subgraphs.push_back(inner.compile());
      });
    }
    for (int slot : step_captures) step.last_uses.push_back(slot);
    step.kernel = provider.compile(NodeInfo(node, constants, threads));
    for (const ir::Value* value : node.outputs()) step.outputs.push_back(slot_of(value));
    return step;
  }

  // Until now last_uses holds the captured slots; walking backwards, the first step that reads a slot is its last use.
  void find_last_uses() {
    std::vector<bool> used(static_cast<size_t>(program->slot_count_));
    auto mark = [&](int slot) { used[static_cast<size_t>(slot)] = true; };
    for (int slot : program->output_slots_) mark(slot);
    for (const auto& [slot, _] : program->constants_) mark(slot);
    for (size_t i = program->steps_.size(); i-- > 0;) {
      Step& step = program->steps_[i];
      SmallVector<int, 4> captured = std::move(step.last_uses);
      step.last_uses = {};
      auto visit = [&](int slot) {
        if (slot < 0 || used[static_cast<size_t>(slot)]) return;
        mark(slot);
        step.last_uses.push_back(slot);
      };
      for (int slot : step.outputs) visit(slot);
      for (int slot : step.inputs) visit(slot);
      for (int slot : captured) visit(slot);
    }
  }
};

std::unique_ptr<Program> Program::compile(const ir::Graph& graph, std::span<const Provider* const> providers,
                                          ThreadPool& threads, std::vector<NodePlacement>& placement) {
  return Compiler{graph, providers, threads, placement}.compile();
}

std::vector<bool> Program::steps_needed(const std::vector<bool>& wanted_outputs) const {
  std::vector<bool> needed_slots(static_cast<size_t>(slot_count_)), needed(steps_.size());
  for (size_t i = 0; i < output_slots_.size(); ++i) {
    if (wanted_outputs[i]) needed_slots[static_cast<size_t>(output_slots_[i])] = true;
  }
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    for (int slot : step.outputs) {
      if (slot >= 0 && needed_slots[static_cast<size_t>(slot)]) needed[i] = true;
    }
    if (!needed[i]) continue;
    for (int slot : step.inputs) {
      if (slot >= 0) needed_slots[static_cast<size_t>(slot)] = true;
    }
    for (const auto& subgraph : step.subgraphs) {
      for (const Capture& capture : subgraph->captures_) needed_slots[static_cast<size_t>(capture.outer_slot)] = true;
    }
  }
  return needed;
}

void Program::run_steps(RunState& state, Frame& frame, const std::vector<bool>* needed) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (needed && !(*needed)[i]) continue;
    state.throw_if_cancelled();
    const Step& step = steps_[i];
    try {
      run_step(state, frame, step);
    } catch (Error& error) {
      throw error.at_node(step.node->describe_here());
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::out_of_memory, "the system has no memory left").at_node(step.node->describe_here());
    } catch (const std::length_error&) {
      throw Error(ErrorCode::overflow, "working memory of more elements than fit is needed")
          .at_node(step.node->describe_here());
    }
    for (int slot : step.last_uses) frame.drop(slot);
  }
}

namespace {

ops::Fact fact_of(const Value& value, const ir::Value& declared) {
  if (value.is_tensor()) return ops::Fact::of(value.tensor());
  ops::Fact fact;
  fact.type = declared.type;
  return fact;
}

}  // namespace

void Program::run_step(RunState& state, Frame& frame, const Step& step) const {
  SmallVector<const Value*, 6> inputs;
  SmallVector<ops::Fact, 4> facts;
  SmallVector<const ops::Fact*, 6> fact_pointers;
  facts.reserve(step.inputs.size());
  bool as_declared = true;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Value* value = frame.at(step.inputs[i]);
    if (step.inputs[i] >= 0 && (!value || !value->defined())) {
      Error error(ErrorCode::invalid_model,
                  "it has no value: the graph's inputs are not all given by the node that runs it");
      throw error.on_tensor(step.node->input(i)->name);
    }
    inputs.push_back(value);
    if (value) facts.push_back(fact_of(*value, *step.node->input(i)));
    if (value && value->is_tensor() && value->tensor().type() != step.node->input(i)->type.element) as_declared = false;
    fact_pointers.push_back(value ? &facts.back() : nullptr);
  }
  // Kernels rely on the types. A model may leave them open, or declare what nothing could check when it was loaded.
  if (!as_declared) ops::check_input_types(*step.op, *step.node, {fact_pointers.data(), fact_pointers.size()});
  SmallVector<ops::Fact, 2> inferred(step.outputs.size());
  ops::Inference inference(*step.node, {fact_pointers.data(), fact_pointers.size()},
                           {inferred.data(), inferred.size()});
  if (step.op->infer_types) step.op->infer_types(inference);

  SmallVector<KernelRun::Output, 2> outputs(step.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    KernelRun::Output& output = outputs[i];
    output.wanted = step.outputs[i] >= 0;
    const ir::Type& type = inferred[i].type;
    output.element = type.element;
    if (type.shape) output.shape = concrete(*type.shape);
    if (output.element == ElementType::undefined && output.wanted) output.element = step.node->output(i)->type.element;
    for (const auto& [slot, destination] : frame.destinations) {
      if (slot == step.outputs[i]) output.destination = destination;
    }
  }
  std::vector<BoundSubgraph> subgraphs;
  SmallVector<Subgraph*, 2> subgraph_pointers;
  subgraphs.reserve(step.subgraphs.size());
  for (const auto& program : step.subgraphs) {
    subgraphs.emplace_back(*program, state, frame);
    subgraph_pointers.push_back(&subgraphs.back());
  }
  KernelRun run(*step.node, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()},
                {subgraph_pointers.data(), subgraph_pointers.size()}, state.threads, state.allocator);
  step.kernel->run(run);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].wanted) continue;
    TENON_CHECK(outputs[i].value.defined());
    frame.hold(step.outputs[i], std::move(outputs[i].value));
  }
}

std::vector<Value> Program::run(RunState& state, std::span<const Value> inputs, const std::vector<bool>& wanted_outputs,
                                std::span<const Tensor> destinations) const {
  Frame frame(*this);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) frame.refer(input_slots_[i], inputs[i]);
  }
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i].defined()) frame.destinations.emplace_back(output_slots_[i], destinations[i]);
  }
  if (std::ranges::all_of(wanted_outputs, [](bool wanted) { return wanted; })) {
    run_steps(state, frame, nullptr);
  } else {
    std::vector<bool> needed = steps_needed(wanted_outputs);
    run_steps(state, frame, &needed);
  }
  std::vector<Value> outputs(output_slots_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!wanted_outputs[i]) continue;
    const Value* value = frame.at(output_slots_[i]);
    TENON_CHECK(value);
    outputs[i] = *value;
  }
  return outputs;
}

}  // namespace tenon
