#include <algorithm>
#include <cstring>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// Whether every bit of the tensor is 0; of floats that is 0, not -0.
bool has_only_zero_bits(const Tensor& tensor) {
  if (tensor.type() == ElementType::string || tensor.bytes() == 0) return false;
  const auto* bytes = static_cast<const char*>(tensor.raw());
  const auto size = static_cast<size_t>(tensor.bytes());
  // Each byte is like the one before it, and the first is 0.
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Whether a run can find nothing but zeros there, whatever its shape.
bool is_zero(const ir::Value* value) {
  constexpr std::string_view moves[] = {"Expand",  "Slice",     "Reshape", "Unsqueeze", "Squeeze",
                                        "Flatten", "Transpose", "Tile",    "Gather",    "Identity"};
  while (value) {
    if (const Tensor* tensor = Editor::constant(value)) return has_only_zero_bits(*tensor);
    const ir::Node* node = value->producer();
    if (!node || !node->domain.empty()) return false;
    if (node->op_type == "ConstantOfShape") {
      const Tensor* content = node->tensor_attribute("value");
      return !content || has_only_zero_bits(*content);
    }
    if (std::ranges::find(moves, node->op_type) == std::end(moves)) return false;
    value = node->input(0);
  }
  return false;
}

}  // namespace

void remove_sums_with_zero(Editor& editor, ir::Node& node) {
  if (!node.domain.empty() || node.op_type != "Add") return;
  for (size_t i : {1, 0}) {
    ir::Value* rest = node.input(1 - i);
    if (!is_zero(node.input(i)) || !editor.same_shape(rest, node.output(0))) continue;
    if (!editor.can_replace(*node.output(0), *rest)) continue;
    editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *rest); });
    return;
  }
}

void leave_out_zero_states(Editor& editor, ir::Node& node) {
  if (!node.domain.empty() || (node.op_type != "LSTM" && node.op_type != "GRU" && node.op_type != "RNN")) return;
  std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
  bool changes = false;
  for (size_t i = 5; i < std::min<size_t>(inputs.size(), 7); ++i) {
    if (!is_zero(inputs[i])) continue;
    inputs[i] = nullptr;
    changes = true;
  }
  if (!changes) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Node& shorter = patch.add_like(node, inputs);
    for (size_t i = 0; i < node.output_count(); ++i) {
      if (node.output(i)) patch.replace(*node.output(i), *shorter.output(i));
    }
  });
}

}  // namespace tenon::passes
