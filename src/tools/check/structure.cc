#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/names.h"
#include "tools/check/subject.h"

namespace tenon::tools {
namespace {

std::vector<std::string_view> names_in_scope(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::Graph* g = &graph; g; g = g->owner() ? &g->owner()->graph() : nullptr) {
    for (const ir::Value& value : g->values()) {
      if (!value.is_undefined()) names.push_back(value.name);
    }
  }
  return names;
}

void find_undefined_names(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    auto report = [&](const std::string& reader, const ir::Value& value) {
      const std::string_view nearest = nearest_name(value.name, names_in_scope(graph));
      findings.add_at(
          reader, value.name, fmt::format("nothing defines the name '{}'", value.name),
          nearest.empty() ? "define it, or read another value" : fmt::format("the nearest name is '{}'", nearest));
    };
    for (const ir::Node& node : graph.nodes()) {
      for (const ir::Value* value : node.inputs()) {
        if (value && value->is_undefined()) report(node.describe(), *value);
      }
    }
    for (const ir::Value* value : graph.outputs()) {
      if (value->is_undefined()) report("", *value);
    }
  });
}

std::string definition(const ir::Value& value) {
  if (value.producer()) return "the output of " + value.producer()->describe();
  return value.is_graph_input() ? "an input of the graph" : "an initializer";
}

void find_duplicate_names(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    std::unordered_map<std::string_view, const ir::Value*> defined;
    for (const ir::Value& value : graph.values()) {
      if (value.is_undefined() || value.name.empty()) continue;
      auto [at, added] = defined.emplace(value.name, &value);
      if (added) continue;
      findings.on_tensor(
          value.name,
          fmt::format("the name is defined twice: as {} and as {}", definition(*at->second), definition(value)),
          "give every value a name of its own");
    }
  });
}

void find_duplicate_node_names(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    std::unordered_map<std::string_view, const ir::Node*> named;
    for (const ir::Node& node : graph.nodes()) {
      if (node.name.empty()) continue;
      auto [at, added] = named.emplace(node.name, &node);
      if (!added)
        findings.at_node(node, fmt::format("{} has the same name", at->second->describe()),
                         "give nodes names of their own: reports and profiles go by them");
    }
  });
}

void find_cycles(const Subject& subject, Findings& findings) {
  const std::unique_ptr<ir::Model> copy = subject.model.clone();
  for_each_graph(*copy, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    try {
      const_cast<ir::Graph&>(graph).sort_topologically();  // the copy is ours
    } catch (const Error& error) {
      findings.add_at(error.node(), error.tensor(), error.message(), "a node may not need what it makes itself");
    }
  });
}

void find_unsorted_nodes(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    std::unordered_set<const ir::Node*> before;
    for (const ir::Node& node : graph.nodes()) {
      for (const ir::Value* value : node.inputs()) {
        const ir::Node* producer = value ? value->producer() : nullptr;
        if (!producer || &producer->graph() != &graph || producer == &node || before.contains(producer)) continue;
        findings.add_at(node.describe(), value->name,
                        fmt::format("it comes before {}, whose output it reads", producer->describe()),
                        "sort the nodes, as ONNX asks for; any command that writes a model does");
        break;
      }
      before.insert(&node);
    }
  });
}

// Nodes of `graph` that its outputs need, directly or not.
void mark_needed(const ir::Value* value, std::unordered_set<const ir::Node*>& needed) {
  std::vector<const ir::Node*> open;
  auto visit = [&](const ir::Value* v) {
    if (v && v->producer() && needed.insert(v->producer()).second) open.push_back(v->producer());
  };
  visit(value);
  while (!open.empty()) {
    const ir::Node* node = open.back();
    open.pop_back();
    for (const ir::Value* input : node->inputs()) visit(input);
    for (const ir::Attribute& attribute : node->attributes) {
      attribute.for_each_graph([&](const ir::Graph& subgraph) {
        for (const ir::Value* output : subgraph.outputs()) visit(output);
        for (const ir::Node& inner : subgraph.nodes()) {
          for (const ir::Value* input : inner.inputs()) visit(input);
        }
      });
    }
  }
}

void find_dead_nodes(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    std::unordered_set<const ir::Node*> needed;
    for (const ir::Value* output : graph.outputs()) mark_needed(output, needed);
    for (const ir::Node& node : graph.nodes()) {
      if (!needed.contains(&node))
        findings.at_node(node, "no output of the graph needs it", "remove it: `tenon optimize --level exact` does");
    }
  });
}

bool is_graph_output(const ir::Value& value) {
  return std::ranges::find(value.graph().outputs(), &value) != value.graph().outputs().end();
}

void find_unused_inputs(const Subject& subject, Findings& findings) {
  for (const ir::Value* value : subject.model.graph->inputs()) {
    if (!value->users().empty() || value->is_initializer() || is_graph_output(*value)) continue;
    findings.on_tensor(value->name, "no node reads this input, yet callers must give it", "remove it from the inputs");
  }
}

void find_unused_initializers(const Subject& subject, Findings& findings) {
  for_each_graph(subject.model, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const ir::Value* value : graph.initializers()) {
      if (!value->users().empty() || is_graph_output(*value)) continue;
      const std::string size =
          value->constant() ? fmt::format(", {} elements", value->constant()->tensor.elements()) : "";
      findings.on_tensor(value->name, fmt::format("no node reads this initializer{}", size),
                         "remove it: `tenon optimize --level exact` does");
    }
  });
}

using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

void find_unused_functions(const Subject& subject, Findings& findings) {
  std::set<FunctionKey> called;
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports&) {
    called.insert({node.domain, node.op_type, node.overload});
  });
  for (const auto& function : subject.model.functions) {
    if (!called.contains({function->domain, function->name, function->overload}))
      findings.add(fmt::format("no node calls function '{}.{}'", function->domain, function->name), "remove it");
  }
}

void find_missing_outputs(const Subject& subject, Findings& findings) {
  if (subject.model.graph->outputs().empty()) findings.add("the graph has no outputs", "declare what it is to give");
}

void find_unnamed_nodes(const Subject& subject, Findings& findings) {
  for_each_node(subject.model, [&](const ir::Node& node, const ir::OpsetImports&) {
    if (node.name.empty())
      findings.at_node(node, "it has no name", "name nodes, so that reports and profiles can be read");
  });
}

void find_external_problems(const Subject& subject, Findings& findings) {
  for (const auto& [tensor, location, problem] : subject.external_problems) {
    findings.on_tensor(tensor, fmt::format("its external data in '{}' {}", location, problem),
                       "put the file beside the model, complete and under this name");
  }
}

constexpr Rule rules[] = {
    {{"external-data", Severity::error, "weights in other files that are missing, too short or outside the folder"},
     find_external_problems},
    {{"undefined-name", Severity::error, "names that are read and that nothing defines"}, find_undefined_names},
    {{"duplicate-name", Severity::error, "values that are defined twice"}, find_duplicate_names},
    {{"cycle", Severity::error, "nodes that need their own output"}, find_cycles},
    {{"no-outputs", Severity::error, "a graph that gives nothing"}, find_missing_outputs},
    {{"not-sorted", Severity::warning, "nodes that come before those whose outputs they read"}, find_unsorted_nodes},
    {{"dead-node", Severity::warning, "nodes that no output needs"}, find_dead_nodes},
    {{"unused-input", Severity::warning, "inputs that no node reads"}, find_unused_inputs},
    {{"unused-initializer", Severity::warning, "weights that no node reads"}, find_unused_initializers},
    {{"unused-function", Severity::warning, "functions of the model that no node calls"}, find_unused_functions},
    {{"duplicate-node-name", Severity::warning, "nodes that share a name"}, find_duplicate_node_names},
    {{"unnamed-node", Severity::note, "nodes without a name"}, find_unnamed_nodes},
};

}  // namespace

std::span<const Rule> structure_rules() { return rules; }

}  // namespace tenon::tools
