#pragma once

#include "ir/graph.h"

namespace tenon::passes {

// Turns Constant nodes into initializers, in subgraphs too, and sparse initializers into dense ones. The latter take
// their memory, which may be far more than the file has bytes, from `allocator`.
void constants_to_initializers(ir::Graph& graph, Allocator& allocator = system_allocator());

// The dense form of a sparse tensor. Throws on indices outside its shape.
Tensor to_dense(const Tensor& values, const Tensor& indices, const Shape& shape,
                Allocator& allocator = system_allocator());

}  // namespace tenon::passes
