#include "passes/lower_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ir/visit.h"
#include "ops/type_history.h"

namespace tenon::passes {
namespace {

bool has_default(const ir::Node& node, const ops::Addition& addition) {
  if (const auto* number = std::get_if<int64_t>(&addition.otherwise))
    return node.int_attribute(addition.attribute, *number) == *number;
  if (const auto* text = std::get_if<std::string>(&addition.otherwise))
    return node.string_attribute(addition.attribute, *text) == *text;
  return false;
}

std::string drop_additions(const ops::Operator& op, ir::Node& node, int version) {
  for (const ops::Addition& addition : op.additions) {
    if (addition.since <= version) continue;
    if (addition.input >= 0 && node.input(static_cast<size_t>(addition.input)))
      return fmt::format("input {} came with version {}", addition.input, addition.since);
    if (addition.input >= 0 || !node.attribute(addition.attribute)) continue;
    if (!has_default(node, addition))
      return fmt::format("attribute '{}' came with version {}", addition.attribute, addition.since);
    node.remove_attribute(addition.attribute);
  }
  return {};
}

std::vector<const ops::Inverse*> inverses_to(const ops::Operator& op, int version) {
  std::vector<const ops::Inverse*> inverses;
  for (const ops::Inverse& inverse : op.inverses) {
    if (inverse.from > version) inverses.push_back(&inverse);
  }
  std::ranges::sort(inverses, std::greater(), [](const ops::Inverse* inverse) { return inverse->from; });
  return inverses;
}

std::string missing_inverse(const ops::Operator& op, int version) {
  const std::vector<const ops::Inverse*> inverses = inverses_to(op, version);
  for (const ops::Adapter& adapter : op.adapters) {
    if (adapter.to <= version) continue;
    auto undoes = [&](const ops::Inverse* inverse) { return inverse->from == adapter.to; };
    if (std::ranges::none_of(inverses, undoes))
      return fmt::format("its meaning changed with version {}, and there is no way back", adapter.to);
  }
  return {};
}

// A copy of the node in a graph of its own, with what is known of its inputs and outputs.
ir::Node& copy_into(ir::Graph& graph, const ir::Node& node) {
  ir::Node& copy = graph.add_node(node.op_type, node.domain);
  copy.origin = node.origin;
  std::map<const ir::Value*, ir::Value*> twins;
  for (const ir::Attribute& attribute : node.attributes) copy.attributes.push_back(ir::clone(attribute, twins));
  auto twin_of = [&](const ir::Value* value) -> ir::Value* {
    if (!value) return nullptr;
    ir::Value*& twin = twins[value];
    if (twin) return twin;
    twin = &graph.add_value(value->name);
    twin->type = value->type;
    if (value->constant()) graph.set_initializer(*twin, value->constant());
    if (value->is_graph_input()) graph.add_input(*twin);
    return twin;
  };
  for (ir::Value* value : node.inputs()) copy.add_input(twin_of(value));
  for (ir::Value* value : node.outputs()) {
    ir::Value* twin = twin_of(value);
    copy.add_output(twin);
    // Some inverses ask whether anybody reads an output.
    const auto& outputs = node.graph().outputs();
    const bool is_read = value && (!value->users().empty() || std::ranges::find(outputs, value) != outputs.end());
    if (is_read) graph.add_output(*twin);
  }
  return copy;
}

}  // namespace

int version_to_write(const ops::Operator& op, const ir::Node& node, int64_t opset) {
  const int version = op.version_at(opset);
  if (op.versions.front() <= opset && (ops::is_in_onnx(op, version) || was_of_version(op, node, version)))
    return version;
  const bool has_older_name = std::ranges::any_of(op.inverses, [&](const ops::Inverse& inverse) {
    return inverse.to < op.versions.front() && inverse.to <= opset;
  });
  return has_older_name ? static_cast<int>(opset) : 0;
}

bool was_of_version(const ops::Operator& op, const ir::Node& node, int version) {
  return node.origin && node.origin->op_type == op.name && op.version_at(node.origin->version) == version;
}

std::string lower_node(ir::Node& node, const ops::Operator& op, int version) {
  std::string reason = missing_inverse(op, version);
  if (reason.empty()) reason = drop_additions(op, node, version);
  if (!reason.empty()) return reason;
  for (const ops::Inverse* inverse : inverses_to(op, version)) {
    if (reason = inverse->lower(node); !reason.empty()) return reason;
  }
  return {};
}

std::string why_not_lower(const ir::Node& node, const ops::Operator& op, int version) {
  if (op.newest_version() <= version) return {};
  if (ir::has_subgraphs(node)) return missing_inverse(op, version);
  ir::Graph scratch;
  return lower_node(copy_into(scratch, node), op, version);
}

}  // namespace tenon::passes
