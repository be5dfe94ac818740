#include "passes/fit_types.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ops/type_history.h"
#include "ops/wider_types.h"

namespace tenon::passes {
namespace {

struct Use {
  ir::Value* value;
  size_t index;
  bool is_input;
};
// The inputs and outputs that must have one type.
using Group = std::vector<Use>;

const ops::Parameter* parameter_at(const std::vector<ops::Parameter>& list, size_t i) {
  if (list.empty()) return nullptr;
  if (i < list.size()) return &list[i];
  return list.back().count == ops::Parameter::Count::any_number ? &list.back() : nullptr;
}

std::vector<Group> groups_of(const ir::Node& node, const ops::Operator& op) {
  std::map<std::string, Group> by_variable;
  std::vector<Group> groups;
  auto add = [&](const std::vector<ops::Parameter>& list, std::span<ir::Value* const> values, bool is_input) {
    for (size_t i = 0; i < values.size(); ++i) {
      const ops::Parameter* parameter = parameter_at(list, i);
      if (!values[i] || !parameter) continue;
      const bool alone = parameter->variable.empty() ||
                         (parameter->count == ops::Parameter::Count::any_number && !parameter->same_types);
      if (alone)
        groups.push_back({{values[i], i, is_input}});
      else
        by_variable[parameter->variable].push_back({values[i], i, is_input});
    }
  };
  add(op.inputs, node.inputs(), true);
  add(op.outputs, node.outputs(), false);
  for (auto& [_, group] : by_variable) groups.push_back(std::move(group));
  return groups;
}

bool allows(const ops::Operator& op, int version, const Use& use, const ir::Type& type) {
  return use.is_input ? ops::allows_input(op, version, use.index, type)
                      : ops::allows_output(op, version, use.index, type);
}

const ops::Operator& cast_operator() {
  static const ops::Operator* cast = ops::operators().find(ops::ai_onnx, "Cast");
  return *cast;
}

bool can_cast(int64_t opset, ElementType type) {
  const ops::Operator& cast = cast_operator();
  return ops::allows_input(cast, cast.version_at(opset), 0, ir::Type::tensor(type));
}

ir::Node& add_cast(ir::Node& before, ir::Value& from, ElementType to) {
  ir::Node& cast = before.graph().add_node("Cast", "", &before);
  cast.name = before.name;
  cast.origin = before.origin;
  cast.add_input(&from);
  cast.set_attribute({"to", static_cast<int64_t>(to)});
  return cast;
}

ir::Value& fresh(ir::Node& node, const std::string& name, ElementType element, const ir::Type& like) {
  ir::Value& value = node.graph().add_value(name, /*fresh=*/true);
  value.type = ir::Type::tensor(element, like.shape);
  return value;
}

void cast_input(ir::Node& node, size_t i, ElementType to) {
  ir::Value& original = *node.input(i);
  ir::Value& wide = fresh(node, original.name, to, original.type);
  add_cast(node, original, to).add_output(&wide);
  node.set_input(i, &wide);
}

// The node's outputs in `narrow` come from Cast nodes behind it; outputs are put back in place all together, because
// only the last ones of a node can be taken off.
void cast_outputs(ir::Node& node, const std::vector<size_t>& which, ElementType to) {
  const std::vector<ir::Value*> originals(node.outputs().begin(), node.outputs().end());
  node.remove_trailing_outputs(0);
  auto next = std::ranges::find_if(node.graph().nodes(), [&](const ir::Node& other) { return &other == &node; });
  ++next;
  ir::Node* behind = next == node.graph().nodes().end() ? nullptr : &*next;
  for (size_t i = 0; i < originals.size(); ++i) {
    if (std::ranges::find(which, i) == which.end()) {
      node.add_output(originals[i]);
      continue;
    }
    ir::Value& wide = fresh(node, originals[i]->name, to, originals[i]->type);
    node.add_output(&wide);
    ir::Node& cast = node.graph().add_node("Cast", "", behind);
    cast.name = node.name;
    cast.origin = node.origin;
    cast.set_attribute({"to", static_cast<int64_t>(originals[i]->type.element)});
    cast.add_input(&wide);
    cast.add_output(originals[i]);
  }
}

void widen(ir::Node& node, const Group& group, ElementType to) {
  std::vector<size_t> outputs;
  for (const Use& use : group) {
    if (use.is_input)
      cast_input(node, use.index, to);
    else
      outputs.push_back(use.index);
  }
  if (!outputs.empty()) cast_outputs(node, outputs, to);
}

std::string why_not(const ops::Operator& op, int64_t opset, const ir::Type& type) {
  if (type.is_tensor() && !can_cast(opset, type.element))
    return fmt::format("opset {} does not have the type {}", opset, name_of(type.element));
  return fmt::format("{} of opset {} does not take {}", op.name, opset, type.name());
}

}  // namespace

Fit fit_types(ir::Node& node, const ops::Operator& op, int version, int64_t opset, std::string& reason) {
  std::vector<std::pair<Group, ElementType>> changes;
  for (Group& group : groups_of(node, op)) {
    auto fits = [&](const ir::Type& type) {
      return std::ranges::all_of(group, [&](const Use& use) { return allows(op, version, use, type); });
    };
    const ir::Type type = group.front().value->type;
    if (fits(type)) continue;
    const bool decided_by_inputs = std::ranges::any_of(group, &Use::is_input);
    const auto wider = ops::wider_types(op, type.element);
    auto usable = [&](ElementType to) { return fits(ir::Type::tensor(to)) && can_cast(opset, to); };
    const auto to = std::ranges::find_if(wider, usable);
    if (!type.is_tensor() || !decided_by_inputs || to == wider.end() || !can_cast(opset, type.element)) {
      reason = why_not(op, opset, type);
      return Fit::blocked;
    }
    changes.emplace_back(std::move(group), *to);
  }
  for (const auto& [group, to] : changes) widen(node, group, to);
  return changes.empty() ? Fit::as_it_is : Fit::rewritten;
}

}  // namespace tenon::passes
