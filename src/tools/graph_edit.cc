#include "tools/graph_edit.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "base/names.h"

namespace tenon::tools {

std::string nearest_hint(std::string_view name, const std::vector<std::string_view>& candidates) {
  const std::string_view nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest);
}

namespace {

// The node whose body defines a value of this name; null if none does.
const ir::Node* owner_of(ir::Graph& graph, const std::string& name) {
  const ir::Node* found = nullptr;
  for_each_graph(graph, [&](const ir::Graph& inner) {
    for (const ir::Value& value : inner.values()) {
      if (!found && inner.owner() && value.name == name && !value.is_undefined()) found = inner.owner();
    }
  });
  return found;
}

}  // namespace

ir::Value& defined_value(ir::Graph& graph, const std::string& name) {
  std::vector<std::string_view> names;
  for (ir::Value& value : graph.values()) {
    if (value.is_undefined()) continue;
    if (value.name == name) return value;
    names.push_back(value.name);
  }
  if (const ir::Node* owner = owner_of(graph, name)) {
    throw Error(ErrorCode::unknown_name,
                "the value is inside of another node, and only values of the main graph can be named",
                "name an input or output of that node")
        .at_node(owner->describe())
        .on_tensor(name);
  }
  throw Error(ErrorCode::unknown_name, fmt::format("the model has no value '{}'", name), nearest_hint(name, names));
}

void replace_everywhere(ir::Graph& graph, ir::Value& old, ir::Value& by) {
  for_each_graph(graph, [&](ir::Graph& inner) {
    for (size_t i = 0; i < inner.outputs().size(); ++i) {
      if (inner.outputs()[i] == &old) inner.set_output(i, by);
    }
  });
  graph.replace_uses(old, by);
}

std::unordered_set<const ir::Value*> needed_values(const ir::Graph& graph) {
  std::unordered_set<const ir::Value*> needed;
  std::vector<const ir::Value*> open(graph.outputs().begin(), graph.outputs().end());
  while (!open.empty()) {
    const ir::Value* value = open.back();
    open.pop_back();
    if (!needed.insert(value).second || !value->producer() || &value->graph() != &graph) continue;
    for_each_read(*value->producer(), [&](const ir::Value& read) {
      if (&read.graph() == &graph) open.push_back(&read);
    });
  }
  return needed;
}

namespace {

void forget_value_infos(ir::Graph& graph) {
  for (ir::Value& value : graph.values()) {
    if (value.is_undefined() && value.users().empty()) value.value_info_position = -1;
  }
}

void forget_annotations(ir::Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const ir::Value& value : graph.values()) {
    if (!value.is_undefined()) names.insert(value.name);
  }
  std::erase_if(graph.quantization_annotations,
                [&](const auto& annotation) { return !names.contains(annotation.first); });
}

}  // namespace

void remove_unneeded(ir::Graph& graph, std::vector<ModelChange>& changes) {
  const std::unordered_set<const ir::Value*> needed = needed_values(graph);
  std::vector<ir::Node*> useless;
  for (ir::Node& node : graph.nodes()) {
    const auto is_needed = [&](const ir::Value* value) { return value && needed.contains(value); };
    if (std::ranges::none_of(node.outputs(), is_needed)) useless.push_back(&node);
  }
  // They may read each other in any order, so all let go before one is removed.
  for (ir::Node* node : useless) {
    changes.push_back({"removed node", node->describe(), ""});
    node->remove_trailing_inputs(0);
    for_each_subgraph(*node, [](ir::Graph& subgraph) { subgraph.detach(); });
  }
  for (ir::Node* node : useless) graph.remove_node(*node);
  graph.remove_unused_initializers([&](const ir::Value& value) {
    if (needed.contains(&value)) return false;
    changes.push_back({"removed initializer", value.name, ""});
    return true;
  });
  forget_value_infos(graph);
  forget_annotations(graph);
}

namespace {

using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

FunctionKey key_of(const ir::Function& f) { return {std::string(ir::canonical_domain(f.domain)), f.name, f.overload}; }

// What the nodes of a graph and of those in it call.
void collect_calls(ir::Graph& graph, std::vector<FunctionKey>& calls, std::set<std::string>& domains) {
  for_each_graph(graph, [&](const ir::Graph& inner) {
    for (const ir::Node& node : inner.nodes()) {
      std::string domain(ir::canonical_domain(node.domain));
      domains.insert(domain);
      calls.emplace_back(std::move(domain), node.op_type, node.overload);
    }
  });
}

}  // namespace

void remove_unused_functions(ir::Model& model, std::vector<ModelChange>& changes) {
  std::set<FunctionKey> called;
  std::set<std::string> domains{""};
  std::vector<FunctionKey> open;
  collect_calls(*model.graph, open, domains);
  while (!open.empty()) {
    const FunctionKey call = open.back();
    open.pop_back();
    for (const auto& function : model.functions) {
      if (key_of(*function) == call && called.insert(call).second) collect_calls(*function->body, open, domains);
    }
  }
  std::erase_if(model.functions, [&](const auto& function) {
    if (called.contains(key_of(*function))) return false;
    changes.push_back({"removed function", function->domain + "." + function->name, ""});
    return true;
  });
  ir::OpsetImports imports;
  for (const auto& [domain, version] : model.opset_imports.entries()) {
    if (domains.contains(std::string(ir::canonical_domain(domain)))) imports.add(domain, version);
  }
  model.opset_imports = std::move(imports);
}

void rename_initializer(ir::Value& value) {
  if (value.constant()) {
    auto constant = std::make_shared<ir::Constant>(*value.constant());
    constant->name = value.name;
    value.graph().set_initializer(value, ir::ConstantPtr(std::move(constant)));
  }
  if (value.sparse_constant()) {
    auto sparse = std::make_shared<ir::SparseConstant>(*value.sparse_constant());
    auto values = std::make_shared<ir::Constant>(*sparse->values);
    values->name = value.name;
    sparse->values = std::move(values);
    value.graph().set_initializer(value, ir::SparseConstantPtr(std::move(sparse)));
  }
}

namespace {

using ChangeConstant = std::function<ir::ConstantPtr(const ir::Constant&)>;

void change_one(ir::ConstantPtr& constant, const ChangeConstant& change) {
  if (ir::ConstantPtr other = change(*constant)) constant = std::move(other);
}

void change_in_graph(ir::Graph& graph, const ChangeConstant& change) {
  for (ir::Value* value : std::vector(graph.initializers())) {
    if (!value->constant()) continue;
    if (ir::ConstantPtr other = change(*value->constant())) graph.set_initializer(*value, std::move(other));
  }
  for (ir::Node& node : graph.nodes()) {
    for (ir::Attribute& attribute : node.attributes) {
      if (auto* one = std::get_if<ir::ConstantPtr>(&attribute.value)) change_one(*one, change);
      if (auto* many = std::get_if<std::vector<ir::ConstantPtr>>(&attribute.value)) {
        for (ir::ConstantPtr& constant : *many) change_one(constant, change);
      }
    }
  }
}

}  // namespace

void change_constants(ir::Model& model, const ChangeConstant& change) {
  const auto in_graph = [&](ir::Graph& graph) { change_in_graph(graph, change); };
  for_each_graph(*model.graph, in_graph);
  for (auto& function : model.functions) for_each_graph(*function->body, in_graph);
}

}  // namespace tenon::tools
