#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

bool is_integer(Editor& editor, const ir::Value& value) {
  return ops::types::ints.contains(editor.fact(value).type.element);
}

// Whether all elements of a constant are this flag.
bool are_all_flags(const ir::Value* value, bool flag) {
  const Tensor* tensor = Editor::constant(value);
  constexpr int64_t most = 1024;
  return tensor && tensor->type() == ElementType::boolean && tensor->elements() <= most &&
         std::ranges::all_of(tensor->data<bool>(), [&](bool item) { return item == flag; });
}

// The input of a logical node that another one, a constant, leaves as it is.
ir::Value* unchanged_flags(const ir::Node& node) {
  const bool neutral = node.op_type == "And";
  if (!neutral && node.op_type != "Or" && node.op_type != "Xor") return nullptr;
  return are_all_flags(node.input(1), neutral)   ? node.input(0)
         : are_all_flags(node.input(0), neutral) ? node.input(1)
                                                 : nullptr;
}

// The input of an arithmetic node that another one, a constant, leaves as it is. x + 0 is not among them for floats: it
// turns -0 into 0.
ir::Value* unchanged_operand(Editor& editor, const ir::Node& node) {
  const bool product = node.op_type == "Mul", sum = node.op_type == "Add";
  if (!product && !sum && node.op_type != "Div" && node.op_type != "Sub") return nullptr;
  const double neutral = product || node.op_type == "Div" ? 1 : 0;
  if (sum && !is_integer(editor, *node.output(0))) return nullptr;
  if (uniform_constant(node.input(1)) == neutral) return node.input(0);
  if ((product || sum) && uniform_constant(node.input(0)) == neutral) return node.input(1);
  return nullptr;
}

bool are_all(const std::optional<std::vector<int64_t>>& numbers, int64_t wanted) {
  return numbers && std::ranges::all_of(*numbers, [&](int64_t number) { return number == wanted; });
}

// Whether the node returns its first input when both have one shape.
bool only_shapes(Editor& editor, const ir::Node& node) {
  if (node.op_type == "Slice")
    return editor.values(node.input(1)) && editor.values(node.input(2)) &&
           (!node.input(4) || are_all(editor.ints(node.input(4)), 1));
  if (node.op_type == "Expand") return editor.values(node.input(1)).has_value();
  return false;
}

// Whether one number is reduced to itself.
bool is_plain_reduction(const ir::Node& node) {
  static constexpr std::string_view plain[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  return std::ranges::find(plain, node.op_type) != std::end(plain);
}

ir::Value* unchanged_input(Editor& editor, const ir::Node& node) {
  const std::string& op = node.op_type;
  if (ir::Value* operand = unchanged_operand(editor, node)) return operand;
  if (ir::Value* flags = unchanged_flags(node)) return flags;
  const bool alone = node.input_count() == 1;
  if (alone && (op == "Concat" || op == "Sum" || op == "Max" || op == "Min" || op == "Mean")) return node.input(0);
  if (op == "Pad" && are_all(editor.ints(node.input(1)), 0)) return node.input(0);
  if (op == "Tile" && are_all(editor.ints(node.input(1)), 1)) return node.input(0);
  if (is_plain_reduction(node)) return node.input(0);
  return only_shapes(editor, node) ? node.input(0) : nullptr;
}

// A reduction of axes of size 1 that are not kept.
void squeeze_instead(Editor& editor, ir::Node& node) {
  ir::Value* input = node.input(0);
  const auto axes = added_axes(editor.shape(node.output(0)), editor.shape(input));
  if (!axes || axes->empty()) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Squeeze", {input, patch.ints(*axes)})); });
}

}  // namespace

void remove_no_ops(Editor& editor, ir::Node& node) {
  if (!node.domain.empty() || node.output_count() != 1 || !node.output(0)) return;
  if (is_plain_reduction(node)) squeeze_instead(editor, node);
  if (editor.is_removed(node)) return;
  ir::Value* input = unchanged_input(editor, node);
  if (!input || !editor.same_shape(input, node.output(0)) || !editor.can_replace(*node.output(0), *input)) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *input); });
}

}  // namespace tenon::passes
