// What fusions ask of the values around a pattern.
#pragma once

#include "passes/editor.h"

namespace tenon::passes {

// Whether the value is a tensor of floats.
bool is_float(Editor& editor, const ir::Value* value);
// The element type of a tensor.
ElementType element_type(Editor& editor, const ir::Value* value);
// The node that alone depends on the value, if it is of this operator of ai.onnx; else null.
ir::Node* sole_user(Editor& editor, const ir::Value* value, std::string_view op_type);
// The other input of a node of two.
ir::Value* other_input(const ir::Node& node, const ir::Value* value);
// Whether the constant is a single number.
bool is_number(const ir::Value* value);

}  // namespace tenon::passes
