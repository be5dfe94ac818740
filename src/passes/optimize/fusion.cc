#include "passes/optimize/fusion.h"
#include "ops/fused_types.h"

#include <algorithm>
#include <limits>

#include "passes/match.h"

namespace tenon::passes {

ElementType element_type(Editor& editor, const ir::Value* value) {
  const ir::Type& type = editor.fact(*value).type;
  return type.is_tensor() ? type.element : ElementType::undefined;
}

bool is_float(Editor& editor, const ir::Value* value) {
  return ops::types::floats.contains(element_type(editor, value));
}

bool has_fused_type(Editor& editor, const ir::Value* value) {
  const ElementType type = element_type(editor, value);
  return editor.target().is_device ? ops::fused_types.contains(type) : type == ElementType::float32;
}

ir::Node* sole_user(Editor& editor, const ir::Value* value, std::string_view op_type) {
  if (!editor.is_only_user(*value)) return nullptr;
  ir::Node* user = value->users()[0];
  return user->op_type == op_type && user->domain.empty() && &user->graph() == &value->graph() ? user : nullptr;
}

ir::Value* other_input(const ir::Node& node, const ir::Value* value) {
  return node.input(0) == value ? node.input(1) : node.input(0);
}

bool are_all(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::ranges::all_of(numbers, [&](int64_t number) { return number == wanted; });
}

bool is_number(const ir::Value* value) {
  const Tensor* tensor = Editor::constant(value);
  return tensor && tensor->elements() == 1 && ops::types::numbers.contains(tensor->type());
}

std::optional<std::array<float, 2>> constant_limits(const ir::Node& clip) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::array<float, 2> limits = {-infinity, infinity};
  for (size_t i : {1, 2}) {
    if (!clip.input(i)) continue;
    if (!is_number(clip.input(i))) return std::nullopt;
    limits[i - 1] = static_cast<float>(*uniform_constant(clip.input(i)));
  }
  return limits[0] <= limits[1] ? std::optional(limits) : std::nullopt;
}

}  // namespace tenon::passes
