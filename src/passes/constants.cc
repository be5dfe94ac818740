#include "passes/constants.h"

#include <cstring>

#include "base/fail.h"

namespace tenon::passes {
namespace {

template <typename T>
Tensor vector_tensor(const std::vector<T>& values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

Tensor content_of(const ir::Node& node, Allocator& allocator) {
  if (node.attributes.size() != 1)
    fail(ErrorCode::invalid_attribute, "Constant takes one attribute, {} are given", node.attributes.size());
  const ir::Attribute& attribute = node.attributes[0];
  const std::string& name = attribute.name;
  if (name == "value") return *node.tensor_attribute(name);
  if (name == "value_float") return Tensor::scalar(node.float_attribute(name, 0));
  if (name == "value_int") return Tensor::scalar(node.int_attribute(name, 0));
  if (name == "value_string") return Tensor::scalar(node.string_attribute(name, ""));
  if (name == "value_floats") return vector_tensor(node.floats_attribute(name));
  if (name == "value_ints") return vector_tensor(node.ints_attribute(name));
  if (name == "value_strings") return vector_tensor(node.strings_attribute(name));
  if (name == "sparse_value" && std::holds_alternative<ir::SparseConstantPtr>(attribute.value)) {
    const auto& sparse = std::get<ir::SparseConstantPtr>(attribute.value);
    return to_dense(sparse->values->tensor, sparse->indices->tensor, sparse->shape, allocator);
  }
  fail(ErrorCode::invalid_attribute, "Constant has no attribute '{}' of kind {}", name, name_of(attribute.kind));
}

}  // namespace

Tensor to_dense(const Tensor& values, const Tensor& indices, const Shape& shape, Allocator& allocator) {
  int64_t count = values.elements();
  bool linear = indices.rank() == 1;
  if (!linear && (indices.rank() != 2 || indices.dim(1) != shape.rank())) {
    fail(ErrorCode::invalid_model, "the indices of a sparse tensor of shape {} have shape {}", shape.to_string(),
         indices.shape().to_string());
  }
  if ((linear ? indices.elements() : indices.dim(0)) != count) {
    fail(ErrorCode::invalid_model, "a sparse tensor has {} values and indices of shape {}", count,
         indices.shape().to_string());
  }
  int bits = bits_of(values.type());
  if (bits < 8 || values.type() == ElementType::string)
    fail(ErrorCode::unsupported, "sparse tensors of {} are not supported", name_of(values.type()));
  Tensor dense(values.type(), shape, allocator);
  auto size = static_cast<size_t>(bits / 8);
  auto* out = static_cast<std::byte*>(dense.mutable_raw());
  const auto* in = static_cast<const std::byte*>(values.raw());
  std::memset(out, 0, static_cast<size_t>(dense.bytes()));
  auto numbers = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = 0;
    if (linear) {
      position = numbers[static_cast<size_t>(i)];
    } else {
      for (int axis = 0; axis < shape.rank(); ++axis) {
        int64_t index = numbers[static_cast<size_t>(i * shape.rank() + axis)];
        if (index < 0 || index >= shape[axis])
          fail(ErrorCode::invalid_model, "sparse index {} is outside of size {}", index, shape[axis]);
        position = position * shape[axis] + index;
      }
    }
    if (position < 0 || position >= dense.elements())
      fail(ErrorCode::invalid_model, "sparse index {} is outside of shape {}", position, shape.to_string());
    std::memcpy(out + static_cast<size_t>(position) * size, in + static_cast<size_t>(i) * size, size);
  }
  return dense;
}

void constants_to_initializers(ir::Graph& graph, Allocator& allocator) {
  std::vector<ir::Node*> constants;
  for (ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](ir::Graph& subgraph) { constants_to_initializers(subgraph, allocator); });
    }
    if (node.op_type == "Constant" && node.domain.empty() && node.output_count() == 1 && node.output(0))
      constants.push_back(&node);
  }
  for (ir::Node* node : constants) {
    try {
      auto constant = std::make_shared<ir::Constant>();
      constant->tensor = content_of(*node, allocator);
      ir::Value& value = *node->output(0);
      constant->name = value.name;
      node->remove_trailing_outputs(0);
      value.type = ir::Type::tensor(constant->tensor.type(), symbolic(constant->tensor.shape()));
      graph.set_initializer(value, ir::ConstantPtr(std::move(constant)));
    } catch (Error& error) {
      throw error.at_node(node->describe());
    }
    graph.remove_node(*node);
  }
  for (ir::Value* value : graph.initializers()) {
    if (!value->sparse_constant()) continue;
    auto constant = std::make_shared<ir::Constant>();
    const ir::SparseConstant& sparse = *value->sparse_constant();
    try {
      constant->tensor = to_dense(sparse.values->tensor, sparse.indices->tensor, sparse.shape, allocator);
    } catch (Error& error) {
      throw error.on_tensor(value->name);
    }
    constant->name = value->name;
    graph.set_initializer(*value, ir::ConstantPtr(std::move(constant)));
  }
}

}  // namespace tenon::passes
