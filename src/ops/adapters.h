// Steps that many version adapters share.
#pragma once

#include <initializer_list>
#include <string_view>

#include "ir/graph.h"

namespace tenon::ops {

inline Tensor int64_vector(const std::vector<int64_t>& numbers) {
  return Tensor(Shape{static_cast<int64_t>(numbers.size())}, std::span<const int64_t>(numbers));
}

// An attribute that became an input: the list as an initializer. Nothing happens when the attribute is absent.
inline void ints_attribute_to_input(ir::Node& node, std::string_view attribute, size_t input) {
  if (!node.attribute(attribute)) return;
  node.set_input(input, &node.graph().add_constant(int64_vector(node.ints_attribute(attribute)), attribute));
  node.remove_attribute(attribute);
}

// A new node before `at` with one output, which is returned.
inline ir::Value& add_node_before(ir::Node& at, std::string op, std::initializer_list<ir::Value*> inputs,
                                  std::string_view output_name) {
  ir::Node& node = at.graph().add_node(std::move(op), "", &at);
  for (ir::Value* input : inputs) node.add_input(input);
  ir::Value& output = at.graph().add_value(std::string(output_name), /*fresh=*/true);
  node.add_output(&output);
  node.origin = at.origin;
  return output;
}

}  // namespace tenon::ops
