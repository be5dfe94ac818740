#include <algorithm>
#include <map>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

struct Part {
  int64_t begin, end, step;
};

// A Slice with constant numbers, by axis; nullopt for others.
std::optional<std::map<int64_t, Part>> parts_of(Editor& editor, const ir::Node& node) {
  auto begin = editor.ints(node.input(1)), end = editor.ints(node.input(2));
  const int rank = editor.rank(node.input(0));
  if (!begin || !end || rank < 0 || begin->size() != end->size()) return std::nullopt;
  std::vector<int64_t> axes(begin->size()), steps(begin->size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  auto given = [&](size_t input, std::vector<int64_t>& numbers) {
    if (!node.input(input)) return true;
    auto known = editor.ints(node.input(input));
    if (!known || known->size() != numbers.size()) return false;
    numbers = *known;
    return true;
  };
  if (!given(3, axes) || !given(4, steps)) return std::nullopt;
  std::map<int64_t, Part> parts;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    parts[axis] = {(*begin)[i], (*end)[i], steps[i]};
  }
  return parts;
}

// A part of a part of one axis, both forwards from numbers that count from the front.
std::optional<Part> combine(const Part& first, const Part& second) {
  if (first.step != 1 || second.step < 1 || first.begin < 0 || first.end < first.begin || second.begin < 0 ||
      second.end < 0)
    return std::nullopt;
  constexpr int64_t large = int64_t{1} << 40;
  if (first.begin > large || second.begin > large) return std::nullopt;
  const int64_t end = second.end > large ? first.end : std::min(first.end, first.begin + second.end);
  return Part{first.begin + second.begin, std::max(end, first.begin), second.step};
}

bool is_only_sliced(Editor& editor, const ir::Value& value) {
  return !editor.is_pinned(value) && std::ranges::all_of(value.users(), [&](const ir::Node* user) {
    return user->op_type == "Slice" && user->domain.empty() && user->input(0) == &value;
  });
}

}  // namespace

void merge_slices(Editor& editor, ir::Node& node) {
  if (node.op_type != "Slice" || !node.domain.empty() || !node.output(0)) return;
  const ir::Node* inner = producer(node.input(0), "Slice");
  if (!inner || !is_only_sliced(editor, *node.input(0))) return;
  auto first = parts_of(editor, *inner), second = parts_of(editor, node);
  if (!first || !second) return;
  for (const auto& [axis, part] : *second) {
    auto [at, added] = first->emplace(axis, part);
    if (added) continue;
    auto both = combine(at->second, part);
    if (!both) return;
    at->second = *both;
  }
  std::vector<int64_t> begin, end, axes, steps;
  for (const auto& [axis, part] : *first) {
    axes.push_back(axis);
    begin.push_back(part.begin);
    end.push_back(part.end);
    steps.push_back(part.step);
  }
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *patch.add("Slice", {inner->input(0), patch.ints(begin), patch.ints(end), patch.ints(axes),
                                             patch.ints(steps)}));
  });
}

}  // namespace tenon::passes
