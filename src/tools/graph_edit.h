// What the tools that cut, join and rename models share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "tenon/tools/changed_model.h"

namespace tenon::tools {

// Calls visit(ir::Graph&) for every graph in an attribute of the node.
template <typename Visit>
void for_each_subgraph(const ir::Node& node, Visit&& visit) {
  for (const ir::Attribute& attribute : node.attributes) attribute.for_each_graph(visit);
}

// Calls visit(ir::Graph&) for the graph and all graphs in it, outer ones first.
template <typename Visit>
void for_each_graph(ir::Graph& graph, Visit&& visit) {
  visit(graph);
  for (ir::Node& node : graph.nodes()) {
    for_each_subgraph(node, [&](ir::Graph& subgraph) { for_each_graph(subgraph, visit); });
  }
}

// Calls visit(ir::Value&) for every value that a node reads: its inputs, and what its subgraphs use.
template <typename Visit>
void for_each_read(const ir::Node& node, Visit&& visit) {
  for (ir::Value* value : node.inputs()) {
    if (value) visit(*value);
  }
  for_each_subgraph(node, [&](const ir::Graph& subgraph) {
    for (const ir::Node& inner : subgraph.nodes()) for_each_read(inner, visit);
    for (ir::Value* value : subgraph.outputs()) visit(*value);
  });
}

// "; did you mean 'x'?" as a hint; "" where no name is near.
std::string nearest_hint(std::string_view name, const std::vector<std::string_view>& candidates);

// A value of the graph itself that is defined there. Throws ErrorCode::unknown_name.
ir::Value& defined_value(ir::Graph& graph, const std::string& name);

// Every use of `old` becomes one of `by`, also as an output of a graph in this one.
void replace_everywhere(ir::Graph& graph, ir::Value& old, ir::Value& by);

// The values of the graph that its outputs need, with what the nodes on the way read.
std::unordered_set<const ir::Value*> needed_values(const ir::Graph& graph);

// Removes nodes and initializers that no output of the graph needs, and what the file says about values that are gone.
void remove_unneeded(ir::Graph& graph, std::vector<ModelChange>& changes);

// Removes functions that nothing calls, and imports of domains that nothing uses. That of ai.onnx stays.
void remove_unused_functions(ir::Model& model, std::vector<ModelChange>& changes);

// Gives the constant of an initializer the name of its value.
void rename_initializer(ir::Value& value);

// Copies of the nodes of `from` at the end of `to`. `values` has a value there for each that they use, and their
// outputs.
void append_nodes(ir::Graph& to, const ir::Graph& from, std::map<const ir::Value*, ir::Value*>& values);

// Calls `change` with every dense tensor that the model stores, as initializer or attribute, in subgraphs and functions
// too. What it returns, unless null, takes the tensor's place.
void change_constants(ir::Model& model, const std::function<ir::ConstantPtr(const ir::Constant&)>& change);

}  // namespace tenon::tools
