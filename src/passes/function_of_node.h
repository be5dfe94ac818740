#pragma once

#include <functional>
#include <memory>

#include "ir/graph.h"

namespace tenon::passes {

// A model-local function that computes what the node does, with its operator's decomposition as body; its inputs and
// outputs are those that the node has, in order. `prepare` is called with the body, whose types are inferred. Null when
// the node cannot be a function: it has subgraphs, leaves out an output before another, or has no decomposition that
// does without the content of its inputs.
std::unique_ptr<ir::Function> function_of_node(const ir::Node& node, const std::function<void(ir::Graph&)>& prepare);

// Makes the node a call of the function.
void call_function(ir::Node& node, const ir::Function& function);

}  // namespace tenon::passes
