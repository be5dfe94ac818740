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

bool is_control_flow(const ir::Node& node, std::string_view op_type) {
  return node.op_type == op_type && node.domain.empty();
}

std::optional<size_t> carried_input(const ir::Node& node, size_t output) {
  const size_t inputs = node.input_count();
  if (is_control_flow(node, "Loop") && output >= 1 && output + 1 < inputs) return output + 1;
  const auto scanned =
      static_cast<size_t>(is_control_flow(node, "Scan") ? node.int_attribute("num_scan_inputs", 0) : 0);
  if (is_control_flow(node, "Scan") && output + scanned < inputs) return output;
  return std::nullopt;
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

// Such as a loop's condition, on its way through the body.
bool DevicePlacement::passes_on_host_value(const ir::Node& node) const {
  if (node.op_type != "Identity" || !node.graph().owner() || node.input(0)->is_fixed()) return false;
  auto found = places_.find(node.input(0));
  return found == places_.end() || found->second != Where::device;
}

const Provider* DevicePlacement::provider_of(const ir::Node& node) {
  const std::string_view reason = computes_sizes(node)         ? "it computes sizes, which are known on the host"
                                  : passes_on_host_value(node) ? "it passes on what is on the host"
                                                               : "";
  for (const Provider* provider : providers_) {
    if (reason.empty() || provider->device() || !provider->claim(node).accepted) continue;
    host_nodes_[&node] = reason;
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
    const Where where = on_device ? Where::device : computes_sizes(*node) ? Where::sizes : Where::host;
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
    // One of its own for what comes back, so that it may stay on the device.
    const bool comes_back = graph.owner() && carried_input(*graph.owner(), i);
    ir::Value& copy = comes_back ? add_copy(value, /*to_device=*/false, graph, nullptr)
                                 : copied(value, /*to_device=*/false, graph, nullptr);
    if (!graph.owner() && renamed.insert(&value).second) std::swap(copy.name, value.name);
    graph.set_output(i, copy);
  }
}

ir::Value& DevicePlacement::copied(ir::Value& value, bool to_device, ir::Graph& graph, ir::Node* before) {
  auto& copies = copies_[&value];
  // Once for all iterations of a loop that reads it from outside.
  ir::Graph *target = &graph, *outer = &graph;
  while (outer != &value.graph()) {
    if (auto found = copies.find(outer); found != copies.end()) return *found->second;
    ir::Node& owner = *outer->owner();
    outer = &owner.graph();
    if (!is_control_flow(owner, "Loop") && !is_control_flow(owner, "Scan")) continue;
    target = outer;
    before = &owner;
  }
  ir::Value*& copy = copies[target];
  if (!copy) copy = &add_copy(value, to_device, *target, before);
  return *copy;
}

ir::Value& DevicePlacement::add_copy(ir::Value& value, bool to_device, ir::Graph& graph, ir::Node* before) {
  // What the caller gives is there first, so that the device goes on undisturbed.
  if (to_device && !value.producer() && &value.graph() == &graph && !graph.nodes().empty())
    before = &graph.nodes().front();
  ir::Node& node = graph.add_node("Copy", std::string(ops::tenon_domain), before);
  inserted_.insert(&node);
  node.set_attribute({"to", std::string(to_device ? "device" : "host")});
  node.add_input(&value);
  ir::Value& copy = graph.add_value(value.name + (to_device ? "_on_device" : "_on_host"), /*fresh=*/true);
  copy.type = value.type;
  node.add_output(&copy);
  if (to_device) places_[&copy] = Where::device;
  return copy;
}

}  // namespace tenon
