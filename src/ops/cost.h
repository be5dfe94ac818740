// Estimates of what a node costs, for reports.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace tenon::ops {

struct Cost {
  // Multiply-adds count as two. Where the operator has no rule: one per output element, none if it only picks elements.
  Dim flops;
  // That are read and written. None of operators that only give a tensor another shape.
  Dim bytes;
};

// What is known of a tensor in terms of cost; null shape: nothing is.
struct CostTensor {
  ElementType element = ElementType::undefined;
  const SymbolicShape* shape = nullptr;
};

// `tensor.shape` is known.
Dim bytes_of(const CostTensor& tensor);

// nullopt where shapes are not known.
std::optional<Cost> cost_of(const ir::Node& node, std::span<const CostTensor> inputs,
                            std::span<const CostTensor> outputs);
// With the types that were inferred.
std::optional<Cost> cost_of(const ir::Node& node);

// Multiply-adds per output element, as rules give them.
namespace multiply_adds {
Dim of_conv(const ir::Node& node, std::span<const CostTensor> inputs);
Dim of_conv_transpose(const ir::Node& node, std::span<const CostTensor> inputs);
Dim of_matmul(const ir::Node& node, std::span<const CostTensor> inputs);
Dim of_gemm(const ir::Node& node, std::span<const CostTensor> inputs);
}  // namespace multiply_adds

}  // namespace tenon::ops
