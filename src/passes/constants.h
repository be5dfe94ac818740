#pragma once

#include "ir/graph.h"

namespace tenon::passes {

// Turns Constant nodes into initializers, in subgraphs too, and sparse initializers into dense ones.
void constants_to_initializers(ir::Graph& graph);

// The dense form of a sparse tensor. Throws on indices outside its shape.
Tensor to_dense(const Tensor& values, const Tensor& indices, const Shape& shape);

}  // namespace tenon::passes
