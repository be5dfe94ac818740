// Steps that the version adapters of several operators share.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

Tensor int64_vector(const std::vector<int64_t>& numbers);

// A new node before `at` with one output, which is returned.
ir::Value& add_node_before(ir::Node& at, std::string op, std::initializer_list<ir::Value*> inputs,
                           std::string_view output_name, std::vector<ir::Attribute> attributes = {});

// An attribute that became an input: the list as an initializer. Without the attribute the input stays left out.
void ints_attribute_to_input(ir::Node& node, std::string_view attribute, size_t input);

// The inverse: "" when it is done, else the reason why not. An input that is left out stays so.
std::string ints_input_to_attribute(ir::Node& node, size_t input, std::string_view attribute);

// Until version 11 axes could not count from the end: those of the attributes `axis` and `axes` become ones that do
// not.
std::string axes_from_front(ir::Node& node);
// The same where they are axes of the output.
std::string output_axes_from_front(ir::Node& node);

// The inverse of an adapter that changes nothing on the way down.
inline std::string same_meaning(ir::Node&) { return {}; }

// Version 1 of many operators had this hint, which says nothing about the result.
void drop_consumed_inputs(ir::Node& node);

// Before version 7 the second input was broadcast only when `broadcast` was set, and lined up with the first from
// `axis` on. Gives it the trailing axes of size 1 that today's broadcasting needs.
void lift_limited_broadcast(ir::Node& node);

// The inverse, where the second input has the first one's shape or its last axes.
std::string limit_broadcast(ir::Node& node);

// Gives input `i` trailing axes of size 1, so that its first axis meets `axis` of input 0.
void line_up_with_axis(ir::Node& node, size_t i, int64_t axis);

}  // namespace tenon::ops
