#include "session/constant_uses.h"

#include <algorithm>

namespace tenon {
namespace {

// Zero points and the like, which many nodes share.
constexpr int64_t small_constant = 4096;

bool is_large(const ir::Value* value) {
  return value && value->is_fixed() && value->constant()->tensor.bytes() > small_constant;
}

template <typename Visit>
void each_node(const ir::Graph& graph, Visit visit) {
  for (const ir::Node& node : graph.nodes()) {
    visit(node);
    for (const ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](const ir::Graph& subgraph) { each_node(subgraph, visit); });
  }
}

}  // namespace

std::vector<const Tensor*> constant_inputs(const ir::Node& node) {
  std::vector<const Tensor*> constants;
  for (const ir::Value* value : node.inputs())
    constants.push_back(value && value->is_fixed() ? &value->constant()->tensor : nullptr);
  return constants;
}

void ConstantUses::ask_kernels(const ir::Graph& graph, std::span<const Provider* const> providers, ThreadPool& threads,
                               const PrecisionChoice& precision) {
  PackedConstants question([&](const auto& key) {
    ++asked_[key];
    return false;
  });
  each_node(graph, [&](const ir::Node& node) {
    const bool shares = std::ranges::any_of(
        node.inputs(), [](const ir::Value* value) { return is_large(value) && value->users().size() > 1; });
    const auto provider =
        std::ranges::find_if(providers, [&](const Provider* p) { return shares && p->claim(node).accepted; });
    if (provider == providers.end()) return;
    try {
      const std::vector<const Tensor*> constants = constant_inputs(node);
      (*provider)->compile(NodeInfo(node, constants, question, threads, precision.of(node)));
    } catch (const Error&) {
      // It will be thrown again when the kernel is made.
    }
  });
}

bool ConstantUses::are_freed_by(const PackedConstants::Key& key) const {
  const auto found = asked_.find(key);
  const size_t nodes = found == asked_.end() ? 1 : found->second;
  return std::ranges::all_of(key.constants, [&](const ir::Value* value) {
    const auto uses = static_cast<size_t>(std::ranges::count(key.constants, value));
    return !is_large(value) || (!outputs_.contains(value) && value->users().size() == nodes * uses);
  });
}

void ConstantUses::add(const ir::Node& node, const NodeInfo& info) {
  for (size_t i = 0; i < node.input_count(); ++i) {
    ir::Value* value = node.input(i);
    if (!value || !value->is_fixed() || info.reads(i) || outputs_.contains(value)) continue;
    if (++packed_uses_[value] < value->users().size()) continue;
    const Tensor& tensor = value->constant()->tensor;
    auto hollow = std::make_shared<ir::Constant>();
    hollow->name = value->constant()->name;
    hollow->tensor = Tensor::over(tensor.type(), tensor.shape(), nullptr);
    value->graph().set_initializer(*value, std::move(hollow));
  }
}

void ConstantUses::note_outputs(const ir::Graph& graph) {
  outputs_.insert(graph.outputs().begin(), graph.outputs().end());
  each_node(graph, [&](const ir::Node& node) {
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph(
          [&](const ir::Graph& subgraph) { outputs_.insert(subgraph.outputs().begin(), subgraph.outputs().end()); });
    }
  });
}

}  // namespace tenon
