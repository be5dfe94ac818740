#include "passes/optimize/moves.h"

#include <algorithm>
#include <utility>

#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

constexpr int most_moves = 16;

// `a` divided by `b`, where that is certainly a whole number.
std::optional<Dim> quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (a.is_known() && b.is_known())
    return a.value() % b.value() == 0 ? std::optional(Dim(a.value() / b.value())) : std::nullopt;
  Dim result = exact_div(a, b);
  return result * b == a ? std::optional(std::move(result)) : std::nullopt;
}

// The part in two, the inner one of this size.
std::pair<AxisPart, AxisPart> split(const AxisPart& part, const Dim& outer, const Dim& inner) {
  const double middle = (part.begin + part.end) / 2;
  return {{part.begin, middle, outer}, {middle, part.end, inner}};
}

// The same parts as axes of these sizes.
bool regroup(std::vector<std::vector<AxisPart>>& axes, const SymbolicShape& sizes) {
  std::vector<AxisPart> left;  // the next one last
  for (auto& axis : axes) left.insert(left.end(), axis.begin(), axis.end());
  std::ranges::reverse(left);
  std::vector<std::vector<AxisPart>> result;
  for (const Dim& size : sizes) {
    std::vector<AxisPart>& axis = result.emplace_back();
    Dim rest = size;
    while (!rest.is(1)) {
      if (left.empty()) return false;
      const AxisPart part = left.back();
      left.pop_back();
      if (auto more = quotient(rest, part.size)) {
        axis.push_back(part);
        rest = *more;
      } else if (auto inner = quotient(part.size, rest)) {
        auto [first, second] = split(part, rest, *inner);
        axis.push_back(first);
        left.push_back(second);
        rest = 1;
      } else {
        return false;
      }
    }
  }
  axes = std::move(result);
  return left.empty();
}

// Takes one of `count` equal parts of the axis.
bool select(Moves& moves, size_t axis, int64_t count, int64_t index) {
  std::vector<AxisPart>& parts = moves.axes[axis];
  if (parts.empty()) return false;
  const auto inner = quotient(parts[0].size, count);
  if (!inner) return false;
  if (inner->is(1)) {
    moves.selections.push_back({parts[0], index});
    parts.erase(parts.begin());
    return true;
  }
  auto [first, second] = split(parts[0], count, *inner);
  moves.selections.push_back({first, index});
  parts[0] = second;
  return true;
}

bool gather(Editor& editor, const ir::Node& node, Moves& moves) {
  const auto index = editor.ints(node.input(1));
  const int rank = editor.rank(node.input(0));
  const int64_t given = node.int_attribute("axis", 0), axis = given < 0 ? given + rank : given;
  if (!index || index->size() != 1 || editor.rank(node.input(1)) != 0) return false;
  const Dim& size = (*editor.shape(node.input(0)))[static_cast<size_t>(axis)];
  if (!size.is_known() || moves.axes[static_cast<size_t>(axis)].size() > 1) return false;
  const int64_t taken = (*index)[0] < 0 ? (*index)[0] + size.value() : (*index)[0];
  if (!size.is(1) && !select(moves, static_cast<size_t>(axis), size.value(), taken)) return false;
  moves.axes.erase(moves.axes.begin() + axis);
  return true;
}

bool take_part(Editor& editor, const ir::Node& node, const ir::Value* output, Moves& moves) {
  const int rank = editor.rank(node.input(0));
  const int64_t given = node.int_attribute("axis", 0), axis = given < 0 ? given + rank : given;
  const auto outputs = node.outputs();
  for (const ir::Value* other : outputs) {
    if (!other || !editor.same_shape(other, outputs[0])) return false;
  }
  const int64_t index = std::ranges::find(outputs, output) - outputs.begin();
  return select(moves, static_cast<size_t>(axis), std::ssize(outputs), index);
}

bool follow(Editor& editor, const ir::Node& node, const ir::Value* output, Moves& moves) {
  if (node.op_type == "Transpose") {
    const Permutation p = permutation_of(node, static_cast<int>(moves.axes.size()));
    if (p.empty()) return false;
    std::vector<std::vector<AxisPart>> axes;
    for (int64_t axis : p) axes.push_back(moves.axes[static_cast<size_t>(axis)]);
    moves.axes = std::move(axes);
    return true;
  }
  if (node.op_type == "Gather") return gather(editor, node, moves);
  if (node.op_type == "Split") return take_part(editor, node, output, moves);
  const SymbolicShape* sizes = editor.shape(output);
  return sizes && regroup(moves.axes, *sizes);
}

bool is_move(Editor& editor, const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (!node || !node->domain.empty() || !editor.shape(node->input(0))) return false;
  if (only_changes_shape(*node)) return shape_is_computed(editor, *node);
  return node->op_type == "Transpose" || node->op_type == "Split" ||
         (node->op_type == "Gather" && editor.rank(node->input(1)) == 0 && Editor::constant(node->input(1)));
}

}  // namespace

std::optional<Moves> moves_of(Editor& editor, ir::Value* value) {
  std::vector<ir::Value*> made{value};
  while (is_move(editor, made.back()) && made.size() <= most_moves) made.push_back(made.back()->producer()->input(0));
  Moves moves;
  moves.source = made.back();
  const SymbolicShape* sizes = editor.shape(moves.source);
  if (!sizes) return std::nullopt;
  for (size_t axis = 0; axis < sizes->size(); ++axis) {
    std::vector<AxisPart>& parts = moves.axes.emplace_back();
    const auto begin = static_cast<double>(axis);
    if (!(*sizes)[axis].is(1)) parts.push_back({begin, begin + 1, (*sizes)[axis]});
  }
  for (size_t i = made.size() - 1; i-- > 0;) {
    if (!follow(editor, *made[i]->producer(), made[i], moves)) return std::nullopt;
  }
  return moves;
}

// Reshape, Transpose, Reshape that only change the order of the axes.
void merge_moves(Editor& editor, ir::Node& node) {
  if (!only_changes_shape(node) || !node.input(0) || !node.output(0)) return;
  const ir::Node* transpose = node.input(0)->producer();
  if (!transpose || transpose->op_type != "Transpose" || !transpose->domain.empty()) return;
  const ir::Node* before = transpose->input(0)->producer();
  if (!before || !only_changes_shape(*before)) return;
  const auto moves = moves_of(editor, node.output(0));
  if (!moves || !moves->selections.empty()) return;
  const SymbolicShape& sizes = *editor.shape(moves->source);
  if (moves->axes.size() != sizes.size()) return;
  std::vector<int64_t> order;
  for (const std::vector<AxisPart>& parts : moves->axes) {
    if (parts.empty()) return;  // its place is anywhere
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].begin != parts[i - 1].end) return;
    }
    const auto axis = static_cast<int64_t>(parts[0].begin);
    if (parts[0].begin != static_cast<double>(axis) || parts.back().end != static_cast<double>(axis + 1)) return;
    order.push_back(axis);
  }
  if (is_identity(order) && !editor.can_replace(*node.output(0), *moves->source)) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node,
                  is_identity(order) ? *moves->source : *patch.add("Transpose", {moves->source}, {{"perm", order}}));
  });
}

}  // namespace tenon::passes
