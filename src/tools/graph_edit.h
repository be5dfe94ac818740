// What the tools that cut, join and rename models share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ir/visit.h"
#include "tenon/tools/changed_model.h"

namespace tenon::tools {

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

// Calls `change` with every dense tensor that the model stores, as initializer or attribute, in subgraphs and functions
// too. What it returns, unless null, takes the tensor's place.
void change_constants(ir::Model& model, const std::function<ir::ConstantPtr(const ir::Constant&)>& change);

}  // namespace tenon::tools
