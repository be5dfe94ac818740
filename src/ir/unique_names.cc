#include "ir/unique_names.h"

#include <fmt/core.h>

#include <unordered_map>
#include <unordered_set>

namespace tenon::ir {
namespace {

using Names = std::unordered_set<std::string>;

template <typename Visit>
void for_each_subgraph(const Graph& graph, Visit&& visit) {
  for (const Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes) attribute.for_each_graph(visit);
  }
}

void collect(const Graph& graph, Names& names) {
  for (const Value& value : graph.values()) names.insert(value.name);
  for_each_subgraph(graph, [&](Graph& subgraph) { collect(subgraph, names); });
}

class Renamer {
 public:
  explicit Renamer(Graph& graph) {
    collect(graph, taken_);
    visit(graph);
  }

 private:
  void visit(Graph& graph) {
    std::vector<std::string> own;
    std::unordered_set<const Value*> seen;
    auto claim = [&](Value& value) {
      if (!seen.insert(&value).second || (value.is_undefined() && value.users().empty())) return;
      if (!visible_.insert(value.name).second) {
        rename(graph, value);
        visible_.insert(value.name);
      }
      own.push_back(value.name);
    };
    for (Value* value : graph.inputs()) claim(*value);
    for (Value* value : graph.outputs()) {
      if (&value->graph() == &graph) claim(*value);
    }
    for (Value& value : graph.values()) claim(value);
    for_each_subgraph(graph, [&](Graph& subgraph) { visit(subgraph); });
    for (const std::string& name : own) visible_.erase(name);
  }

  void rename(Graph& graph, Value& value) {
    std::string name;
    do name = fmt::format("{}_{}", value.name, ++count_);
    while (!taken_.insert(name).second);
    value.name = name;
    if (!value.constant()) return;
    auto constant = std::make_shared<Constant>(*value.constant());
    constant->name = std::move(name);
    graph.set_initializer(value, ConstantPtr(std::move(constant)));
  }

  Names taken_, visible_;  // anywhere in the model; in the graph at hand and around it
  int64_t count_ = 0;
};

void make_node_names_unique(Graph& graph) {
  std::unordered_map<std::string, int64_t> left;
  for (const Node& node : graph.nodes()) ++left[node.name];
  Names taken;
  for (const auto& [name, count] : left) taken.insert(name);
  for (Node& node : graph.nodes()) {
    if (node.name.empty() || --left[node.name] == 0) continue;
    std::string name;
    int64_t number = left[node.name];
    do name = fmt::format("{}_{}", node.name, number++);
    while (!taken.insert(name).second);
    node.name = std::move(name);
  }
  for_each_subgraph(graph, [](Graph& subgraph) { make_node_names_unique(subgraph); });
}

}  // namespace

void make_node_names_unique(Model& model) {
  make_node_names_unique(*model.graph);
  for (const auto& function : model.functions) make_node_names_unique(*function->body);
}

void make_names_unique(Model& model) {
  Renamer renamer(*model.graph);
  for (const auto& function : model.functions) Renamer in_function(*function->body);
}

}  // namespace tenon::ir
