#include "ops/cost.h"

#include <algorithm>

#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {

Dim bytes_of(const CostTensor& tensor) {
  const int bits = bits_of(tensor.element);
  const Dim elements = element_count(*tensor.shape);
  return bits % 8 == 0 ? elements * Dim(bits / 8) : ceil_div(elements * Dim(bits), Dim(8));
}

std::optional<Cost> cost_of(const ir::Node& node, std::span<const CostTensor> inputs,
                            std::span<const CostTensor> outputs) {
  const Operator* op = operator_of(node);
  Cost cost{0, 0};
  if (op && op->view_rule == whole_input) return cost;
  std::span<const CostTensor> read = inputs;
  const Reads reads = op ? op->reads_first_input : Reads::all;
  if (reads != Reads::all && !inputs.empty()) {
    read = inputs.subspan(1);
    if (reads == Reads::picked && !outputs.empty() && outputs[0].shape && outputs[0].element != ElementType::string)
      cost.bytes = bytes_of(outputs[0]);
  }
  for (std::span<const CostTensor> list : {read, outputs}) {
    for (const CostTensor& tensor : list) {
      if (tensor.element == ElementType::undefined || tensor.element == ElementType::string) continue;
      if (!tensor.shape) return std::nullopt;
      cost.bytes = cost.bytes + bytes_of(tensor);
    }
  }
  if (outputs.empty() || !outputs[0].shape) return std::nullopt;
  const Dim elements = element_count(*outputs[0].shape);
  if (op && op->multiply_adds_rule) {
    for (const CostTensor& tensor : inputs.first(std::min<size_t>(2, inputs.size()))) {
      if (!tensor.shape && tensor.element != ElementType::undefined) return std::nullopt;
    }
    cost.flops = Dim(2) * elements * op->multiply_adds_rule(node, inputs);
  } else if (reads == Reads::all) {
    cost.flops = op && op->operations_rule ? elements * Dim(op->operations_rule(node)) : elements;
  }
  return cost;
}

std::optional<Cost> cost_of(const ir::Node& node) {
  auto describe = [](std::span<ir::Value* const> values) {
    std::vector<CostTensor> list;
    for (const ir::Value* value : values) {
      if (value && value->type.is_tensor())
        list.push_back({value->type.element, value->type.shape ? &*value->type.shape : nullptr});
      else
        list.emplace_back();
    }
    return list;
  };
  return cost_of(node, describe(node.inputs()), describe(node.outputs()));
}

namespace multiply_adds {

Dim of_conv(const ir::Node&, std::span<const CostTensor> inputs) {
  const SymbolicShape& weights = *inputs[1].shape;
  return weights.empty() ? Dim(0) : element_count(SymbolicShape(weights.begin() + 1, weights.end()));
}

// Each input value adds to as many outputs as the kernel has elements; per output, that is a fraction.
Dim of_conv_transpose(const ir::Node& node, std::span<const CostTensor> inputs) {
  const SymbolicShape& weights = *inputs[1].shape;
  if (weights.size() < 2) return 0;
  Dim taps = element_count(SymbolicShape(weights.begin() + 2, weights.end()));
  for (int64_t stride : node.ints_attribute("strides")) taps = ceil_div(taps, Dim(std::max<int64_t>(1, stride)));
  return floor_div(weights[0], Dim(std::max<int64_t>(1, node.int_attribute("group", 1)))) * taps;
}

Dim of_matmul(const ir::Node&, std::span<const CostTensor> inputs) {
  const SymbolicShape& b = *inputs[1].shape;
  if (b.empty()) return 0;
  return b.size() == 1 ? b[0] : b[b.size() - 2];
}

Dim of_gemm(const ir::Node& node, std::span<const CostTensor> inputs) {
  const SymbolicShape& b = *inputs[1].shape;
  return b.size() < 2 ? Dim(0) : b[b.size() - (node.int_attribute("transB", 0) ? 1 : 2)];
}

}  // namespace multiply_adds
}  // namespace tenon::ops
