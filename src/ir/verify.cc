#include "ir/verify.h"

#include <unordered_map>

#include "base/fail.h"
#include "base/names.h"

namespace tenon::ir {
namespace {

constexpr size_t most_shown = 20;

struct Problems {
  std::vector<std::string> undefined;  // the first of them
  size_t count = 0;
};

std::vector<std::string_view> names_in_scope(const Graph& graph) {
  std::vector<std::string_view> names;
  for (const Graph* g = &graph; g; g = g->owner() ? &g->owner()->graph() : nullptr) {
    for (const Value& value : g->values()) {
      if (!value.is_undefined()) names.push_back(value.name);
    }
  }
  return names;
}

void find_undefined(const Graph& graph, Problems& problems) {
  auto note = [&](const Value& value, const std::string& reader) {
    if (++problems.count > most_shown) return;
    std::string_view nearest = nearest_name(value.name, names_in_scope(graph));
    std::string suggestion = nearest.empty() ? "" : fmt::format("; the nearest name is '{}'", nearest);
    problems.undefined.push_back(fmt::format("'{}', read by {}{}", value.name, reader, suggestion));
  };
  for (const Node& node : graph.nodes()) {
    for (const Value* value : node.inputs()) {
      if (value && value->is_undefined()) note(*value, node.describe());
    }
    for (const Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const Graph& subgraph) { find_undefined(subgraph, problems); });
    }
  }
  for (const Value* value : graph.outputs()) {
    if (value->is_undefined()) note(*value, "the graph's outputs");
  }
}

std::string definition(const Value& value) {
  if (value.producer()) return "output of " + value.producer()->describe();
  return value.is_graph_input() ? "an input of the graph" : "an initializer";
}

void find_duplicates(const Graph& graph) {
  std::unordered_map<std::string_view, const Value*> defined;
  for (const Value& value : graph.values()) {
    if (value.is_undefined() || value.name.empty()) continue;
    auto [at, added] = defined.emplace(value.name, &value);
    if (added) continue;
    throw Error(ErrorCode::duplicate_name,
                fmt::format("the name is defined twice: as {} and as {}", definition(*at->second), definition(value)),
                "every value needs a name of its own")
        .on_tensor(value.name);
  }
  for (const Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes)
      attribute.for_each_graph([](const Graph& g) { find_duplicates(g); });
  }
}

void sort_all(Graph& graph) {
  graph.sort_topologically();
  for (Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes) attribute.for_each_graph([](Graph& g) { sort_all(g); });
  }
}

void count_uses(const Graph& graph, std::unordered_map<const Value*, size_t>& uses) {
  for (const Node& node : graph.nodes()) {
    TENON_CHECK(&node.graph() == &graph);
    for (const Value* value : node.inputs()) {
      if (value) ++uses[value];
    }
    for (const Value* value : node.outputs()) {
      TENON_CHECK(!value || (value->producer() == &node && &value->graph() == &graph));
    }
    for (const Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const Graph& subgraph) {
        TENON_CHECK(subgraph.owner() == &node);
        count_uses(subgraph, uses);
      });
    }
  }
}

void compare_uses(const Graph& graph, const std::unordered_map<const Value*, size_t>& uses) {
  for (const Value& value : graph.values()) {
    auto found = uses.find(&value);
    TENON_CHECK(value.users().size() == (found == uses.end() ? 0 : found->second));
  }
  for (const Node& node : graph.nodes()) {
    for (const Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](const Graph& subgraph) { compare_uses(subgraph, uses); });
  }
}

}  // namespace

void verify_links(const Graph& graph) {
  std::unordered_map<const Value*, size_t> uses;
  count_uses(graph, uses);
  compare_uses(graph, uses);
}

void verify_and_sort(Graph& graph) {
  Problems problems;
  find_undefined(graph, problems);
  if (!problems.undefined.empty()) {
    std::string text = problems.count == 1 ? "a name is read that nothing defines:"
                                           : fmt::format("{} names are read that nothing defines:", problems.count);
    for (const std::string& line : problems.undefined) text += "\n  " + line;
    throw Error(ErrorCode::undefined_name, text);
  }
  find_duplicates(graph);
  sort_all(graph);
}

}  // namespace tenon::ir
