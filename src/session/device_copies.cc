#include "session/device_copies.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ir/visit.h"
#include "ops/operator.h"

namespace tenon {

bool reads_shape_only(const ir::Node& node, size_t input) {
  const ops::Operator* op = ops::operator_of(node);
  return input == 0 && op && op->reads_first_input == ops::Reads::shape;
}

DevicePlacement::DevicePlacement(ir::Graph& graph, std::span<const Provider* const> providers, const Provider* support)
    : providers_(providers), support_(support) {
  visit(graph);
}

const std::string& DevicePlacement::reason_for_host(const ir::Node& node) const {
  static const std::string none;
  auto found = host_nodes_.find(&node);
  return found == host_nodes_.end() ? none : found->second;
}

bool DevicePlacement::allows(const Provider& provider, const ir::Node& node) const {
  if (&provider != support_ || is_copy(node) || !reason_for_host(node).empty()) return true;
  return ir::has_subgraphs(node);
}

// Sizes are computed from shapes while a plan is made, and then read by kernels on the host.
bool DevicePlacement::computes_sizes(const ir::Node& node) const {
  bool has_sizes = false;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const ir::Value* value = node.input(i);
    if (!value || value->is_fixed()) continue;
    if (reads_shape_only(node, i)) {
      has_sizes = true;
      continue;
    }
    auto found = places_.find(value);
    if (found == places_.end() || found->second != Where::sizes) return false;
    has_sizes = true;
  }
  return has_sizes && std::ranges::all_of(node.outputs(), [](const ir::Value* value) {
           if (!value) return true;
           const bool is_integer = value->type.element == ElementType::int64 ||
                                   value->type.element == ElementType::int32 ||
                                   value->type.element == ElementType::boolean;
           return value->type.is_tensor() && is_integer && value->type.shape && value->type.shape->size() <= 1;
         });
}

const Provider* DevicePlacement::provider_of(const ir::Node& node) {
  const bool is_about_sizes = computes_sizes(node);
  for (const Provider* provider : providers_) {
    if (!is_about_sizes || provider->device() || !provider->claim(node).accepted) continue;
    host_nodes_[&node] = "it computes sizes, which are known on the host";
    return provider;
  }
  for (const Provider* provider : providers_) {
    if (allows(*provider, node) && provider->claim(node).accepted) return provider;
  }
  return nullptr;
}

void DevicePlacement::visit(ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
  for (ir::Node* node : nodes) {
    const Provider* provider = provider_of(*node);
    if (!provider) continue;  // compiling will say so
    const bool on_device = provider->device() != nullptr;
    for (size_t i = 0; i < node->input_count(); ++i) {
      ir::Value* value = node->input(i);
      if (!value || value->is_fixed() || reads_shape_only(*node, i)) continue;
      const bool wanted_there = on_device && !provider->reads_on_host(*node, i);
      auto place = places_.find(value);
      const bool is_there = place != places_.end() && place->second == Where::device;
      if (wanted_there != is_there) node->set_input(i, &copied(*value, wanted_there, graph, node));
    }
    const Where where = on_device ? Where::device : !reason_for_host(*node).empty() ? Where::sizes : Where::host;
    for (const ir::Value* value : node->outputs()) {
      if (value && where != Where::host) places_[value] = where;
    }
    for (const ir::Attribute& attribute : node->attributes)
      attribute.for_each_graph([&](ir::Graph& subgraph) { visit(subgraph); });
  }
  std::unordered_set<const ir::Value*> renamed;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    ir::Value& value = *graph.outputs()[i];
    auto place = places_.find(&value);
    if (place == places_.end() || place->second != Where::device) continue;
    ir::Value& copy = copied(value, /*to_device=*/false, graph, nullptr);
    if (!graph.owner() && renamed.insert(&value).second) std::swap(copy.name, value.name);
    graph.set_output(i, copy);
  }
}

ir::Value& DevicePlacement::copied(ir::Value& value, bool to_device, ir::Graph& graph, ir::Node* before) {
  ir::Value*& copy = copies_[&value][&graph];
  if (copy) return *copy;
  // What the caller gives is there first, so that the device goes on undisturbed.
  if (to_device && !value.producer() && &value.graph() == &graph && !graph.nodes().empty())
    before = &graph.nodes().front();
  ir::Node& node = graph.add_node("Copy", std::string(ops::tenon_domain), before);
  inserted_.insert(&node);
  node.set_attribute({"to", std::string(to_device ? "device" : "host")});
  node.add_input(&value);
  copy = &graph.add_value(value.name + (to_device ? "_on_device" : "_on_host"), /*fresh=*/true);
  copy->type = value.type;
  node.add_output(copy);
  if (to_device) places_[copy] = Where::device;
  return *copy;
}

}  // namespace tenon
