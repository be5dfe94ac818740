// Nodes copied from one graph into another.
#pragma once

#include <map>

#include "ir/graph.h"

namespace tenon::ir {

// What stands in a copy for a value. Values without a twin belong to graphs outside of what is copied: they stay
// shared.
using Twins = std::map<const Value*, Value*>;

Value* twin_of(const Twins& twins, Value* value);

// Makes `copy`, a new node of the same operator, what `node` is, subgraphs included.
void copy_node(const Node& node, Node& copy, Twins& twins);
// The same without outputs.
void copy_node_without_outputs(const Node& node, Node& copy, Twins& twins);

// Adds copies of all nodes of `from`.
void append_nodes(Graph& to, const Graph& from, Twins& twins);

}  // namespace tenon::ir
