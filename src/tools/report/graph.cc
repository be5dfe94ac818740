#include "tools/report/graph.h"

#include <fmt/core.h>

#include "base/available_memory.h"
#include "base/fail.h"
#include "base/index.h"
#include "session/check_inputs.h"
#include "session/memory_pool.h"
#include "session/plan_cache.h"
#include "tools/step_times.h"

namespace tenon::tools {
namespace {

using Kind = ReportTensor::Kind;
using Role = ReportNode::Role;

std::string description(const std::string& text, const std::string& op_type) { return text + '\n' + op_type; }

int64_t byte_count(const Tensor& tensor) { return tensor.type() == ElementType::string ? -1 : tensor.bytes(); }

std::string type_text(ElementType element, const Shape& shape) {
  return fmt::format("{} {}", name_of(element), shape.to_string());
}

class GraphReader {
 public:
  explicit GraphReader(ReportGraph& graph) : graph_(graph) {}

  void read(const CompiledModel& model) {
    for (const ir::Value* input : model.graph().inputs()) at(graph_.tensors, number_of(input)).kind = Kind::input;
    read(model.program(), -1, "");
    for (const ir::Value* output : model.graph().outputs()) at(graph_.tensors, number_of(output)).is_output = true;
  }

 private:
  void read(const Program& program, int owner, const std::string& body) {
    for (const Step& step : program.steps()) {
      const int number = static_cast<int>(graph_.nodes.size());
      ReportNode node;
      node.step = &step;
      node.text = step.node->describe();
      node.owner = owner;
      node.body = body;
      for (const ir::Value* value : step.node->inputs()) node.inputs.push_back(value ? number_of(value) : -1);
      for (const ir::Value* value : step.node->outputs()) {
        node.outputs.push_back(value ? number_of(value) : -1);
        if (value) at(graph_.tensors, node.outputs.back()).producer = number;
      }
      graph_.by_description[description(node.text, step.node->op_type)].push_back(number);
      graph_.nodes.push_back(std::move(node));
      read_bodies(step, number);
    }
  }

  void read_bodies(const Step& step, int number) {
    std::vector<std::string> names;
    for (const ir::Attribute& attribute : step.node->attributes)
      attribute.for_each_graph([&](const ir::Graph&) { names.push_back(attribute.name); });
    for (size_t i = 0; i < step.subgraphs.size(); ++i)
      read(*step.subgraphs[i], number, i < names.size() ? names[i] : fmt::format("body {}", i));
  }

  int number_of(const ir::Value* value) {
    auto [found, is_new] = numbers_.try_emplace(value, static_cast<int>(graph_.tensors.size()));
    if (!is_new) return found->second;
    ReportTensor tensor;
    tensor.value = value;
    if (value->is_initializer()) tensor.kind = Kind::weight;
    if (value->constant()) {
      const Tensor& content = value->constant()->tensor;
      tensor.type = type_text(content.type(), content.shape());
      tensor.bytes = byte_count(content);
    } else {
      tensor.type = value->type.to_string();
    }
    graph_.tensors.push_back(std::move(tensor));
    return found->second;
  }

  ReportGraph& graph_;
  std::unordered_map<const ir::Value*, int> numbers_;
};

// Notes what every step makes.
class SizeWatcher final : public RunWatcher {
 public:
  struct Seen {
    std::string type;
    int64_t bytes;
  };
  std::map<std::string, Seen, std::less<>> seen;

  void after(const WatchedStep& step) override {
    for (const WatchedStep::Operand& output : step.outputs) {
      if (!output.value || !output.value->defined()) continue;
      Seen& entry = seen[std::string(output.name)];
      if (!output.value->is_tensor()) {
        entry = {output.value->describe(), -1};
        continue;
      }
      const Tensor& tensor = output.value->tensor();
      entry = {type_text(tensor.type(), tensor.shape()), byte_count(tensor)};
    }
  }
};

Role role_without_run(const ReportNode& node, const Plan& plan) {
  for (int slot : node.step->outputs) {
    if (slot < 0) continue;
    const Plan::Home home = plan.home(slot);
    if (home != Plan::Home::known && home != Plan::Home::none) return Role::view;
  }
  return Role::known;
}

// What the outputs of a node that only gives other views are made of.
void bridge(ReportGraph& graph, const ReportNode& node, const Plan& plan) {
  std::vector<int> sources;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int slot = node.step->inputs[i];
    if (node.inputs[i] < 0 || slot < 0 || at(graph.tensors, node.inputs[i]).kind == Kind::weight) continue;
    if (plan.home(slot) != Plan::Home::known) sources.push_back(node.inputs[i]);
  }
  for (int tensor : node.outputs) {
    if (tensor >= 0) at(graph.tensors, tensor).made_of = sources;
  }
}

}  // namespace

int ReportGraph::find(const std::string& text, const std::string& op_type, size_t n) const {
  auto found = by_description.find(description(text, op_type));
  return found == by_description.end() ? -1 : found->second[n % found->second.size()];
}

ReportGraph read_graph(const CompiledModel& model) {
  ReportGraph graph;
  GraphReader(graph).read(model);
  return graph;
}

std::shared_ptr<const Plan> plan_for(const CompiledModel& model, const NamedValues& inputs, int branch_threads) {
  const std::vector<Value> values = check_inputs(model.graph(), inputs);
  std::vector<const Value*> arguments;
  for (const Value& value : values) arguments.push_back(value.defined() ? &value : nullptr);
  const Program& program = model.program();
  MemoryPool memory(available_memory());
  PlanCaches plans(program);
  const RunState state{
      .threads = *ThreadPool::shared(), .allocator = memory, .plans = plans, .branch_threads = branch_threads};
  return plans.of(program).find_or_make(program, state, arguments, std::vector<bool>(model.outputs.size(), true));
}

void take_plan(ReportGraph& graph, const Program& program, const Plan& plan) {
  size_t step = 0;
  auto take = [&](int tensor, int slot) {
    if (tensor < 0 || slot < 0) return;
    const Plan::Slot& place = at(plan.slots, slot);
    ReportTensor& entry = at(graph.tensors, tensor);
    if (entry.kind == Kind::weight || place.element == ElementType::undefined) return;
    const Plan::Home home = plan.home(slot);
    if (home == Plan::Home::none || home == Plan::Home::kernel) return;
    entry.type = type_text(place.element, place.shape);
    if (place.element != ElementType::string) entry.bytes = byte_size(place.element, place.shape.elements());
  };
  for (ReportNode& node : graph.nodes) {
    if (node.owner >= 0) continue;
    if (at(plan.item_of_step, static_cast<int>(step)) < 0) node.role = role_without_run(node, plan);
    for (size_t i = 0; i < node.inputs.size(); ++i) take(node.inputs[i], node.step->inputs[i]);
    for (size_t i = 0; i < node.outputs.size(); ++i) take(node.outputs[i], node.step->outputs[i]);
    ++step;
  }
  for (ReportNode& node : graph.nodes) {
    if (node.owner >= 0) node.role = at(graph.nodes, node.owner).role;
    if (node.owner < 0 && node.role == Role::view) bridge(graph, node, plan);
  }
  TENON_CHECK(step == program.steps().size());
}

void take_sizes_of_run(ReportGraph& graph, const Session& session, const NamedValues& inputs) {
  SizeWatcher watcher;
  RunOptions options;
  options.watcher = &watcher;
  session.run(inputs, options);
  for (ReportTensor& tensor : graph.tensors) {
    auto found = watcher.seen.find(tensor.value->name);
    if (tensor.bytes >= 0 || found == watcher.seen.end()) continue;
    tensor.type = found->second.type;
    tensor.bytes = found->second.bytes;
  }
}

void take_times(ReportGraph& graph, const std::vector<ProfiledRun>& runs) {
  for (const ProfiledRun& run : runs) {
    std::map<std::pair<std::string, std::string>, size_t> seen;
    const std::vector<OwnTime> own = own_times(run.steps);
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const StepProfile& step = run.steps[i];
      const int number = graph.find(step.node, step.op_type, seen[{step.node, step.op_type}]++);
      if (number < 0) continue;
      ReportNode& node = at(graph.nodes, number);
      ++node.calls;
      node.seconds += static_cast<double>(own[i].nanoseconds) * 1e-9;
      if (own[i].has_inner) continue;
      node.flops += step.flops;
      node.bytes += step.bytes;
    }
  }
}

}  // namespace tenon::tools
