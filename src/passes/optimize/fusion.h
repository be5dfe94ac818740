// What fusions ask of the values around a pattern.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

// Whether the value is a tensor of floats.
bool is_float(Editor& editor, const ir::Value* value);
// Whether what is computed of such values can be one of our own operators: the host's take float32 alone.
bool has_fused_type(Editor& editor, const ir::Value* value);
// The element type of a tensor.
ElementType element_type(Editor& editor, const ir::Value* value);
// The node that alone depends on the value, if it is of this operator of ai.onnx; else null.
ir::Node* sole_user(Editor& editor, const ir::Value* value, std::string_view op_type);
// The other input of a node of two.
ir::Value* other_input(const ir::Node& node, const ir::Value* value);
// Whether each of them is that number: strides or dilations of 1, pads of 0.
bool are_all(const std::vector<int64_t>& numbers, int64_t wanted);
// Whether the constant is a single number.
bool is_number(const ir::Value* value);
// The limits of a Clip of float32 or float16, when they are constants and do not cross; infinite where there is none.
std::optional<std::array<float, 2>> constant_limits(const ir::Node& clip);

}  // namespace tenon::passes
