#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon::ir {

// The model as text, one node a line, subgraphs indented below their node:
//
//   graph 'main' (x: tensor(float) [batch, 3]) -> (y: tensor(float) [batch, 2])
//     initializer w: tensor(float) [3, 2]
//     y = MatMul(x, w)  # 'dense'
std::string to_text(const Model& model);
std::string to_text(const Graph& graph);

// The attributes of a node, but for graphs: "axis=1, pads=[0, 0, 1, 1]".
std::string attributes_text(const Node& node);

}  // namespace tenon::ir
