// What the writers of quantized graphs share.
#pragma once

#include <initializer_list>
#include <string>

#include "ir/graph.h"

namespace tenon::tools {

// A node at the end of the graph and its output, which is called `name`, as is the node.
ir::Value& add_operator(ir::Graph& graph, const std::string& op, const std::string& domain,
                        std::initializer_list<ir::Value*> inputs, const std::string& name);

// Every use of `old` by the node becomes one of `by`.
void replace_input(ir::Node& node, const ir::Value& old, ir::Value& by);

// The domain whose QuantizeLinear and DequantizeLinear know a type: com.microsoft has 16 bits before opset 21 does.
// Adds the import.
std::string quantize_domain(ir::Model& model, ElementType type);
void import_microsoft(ir::Model& model);

// Sorts nodes, and removes those and constants that nothing reads any more.
void finish(ir::Model& model);

// Bytes of all constants.
int64_t constant_bytes(const ir::Model& model);

}  // namespace tenon::tools
