#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The pads of spatial axes, begins before ends, if the node pads nothing else and only with `value`.
std::optional<std::vector<int64_t>> spatial_pads(Editor& editor, const ir::Node& pad, double value) {
  if (pad.string_attribute("mode", "constant") != "constant") return std::nullopt;
  if (pad.input(2) ? uniform_constant(pad.input(2)) != value : value != 0) return std::nullopt;
  const int rank = editor.rank(pad.input(0));
  auto given = editor.ints(pad.input(1));
  auto axes = editor.ints(pad.input(3));
  if (rank < 3 || !given || (pad.input(3) && !axes)) return std::nullopt;
  if (!axes) {
    axes.emplace();
    for (int axis = 0; axis < rank; ++axis) axes->push_back(axis);
  }
  const size_t count = axes->size(), spatial = static_cast<size_t>(rank) - 2;
  if (given->size() != 2 * count) return std::nullopt;
  std::vector<int64_t> pads(2 * spatial, 0);
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    const int64_t begin = (*given)[i], end = (*given)[i + count];
    if (begin < 0 || end < 0 || (axis < 2 && begin + end > 0)) return std::nullopt;
    if (axis < 2) continue;
    pads[static_cast<size_t>(axis) - 2] = begin;
    pads[static_cast<size_t>(axis) - 2 + spatial] = end;
  }
  return pads;
}

// What padding must be made of so that the node's own padding is the same; nullopt where it cannot be.
std::optional<double> own_padding(const ir::Node& node) {
  if (!node.domain.empty() || node.string_attribute("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  if (node.op_type == "Conv") return 0;
  if (node.op_type != "AveragePool" || node.int_attribute("ceil_mode", 0) != 0) return std::nullopt;
  const std::vector<int64_t> pads = node.ints_attribute("pads");
  const bool has_pads = std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; });
  // Zeros of a Pad count as elements.
  return node.int_attribute("count_include_pad", 0) != 0 || !has_pads ? std::optional<double>(0) : std::nullopt;
}

}  // namespace

void merge_pads(Editor& editor, ir::Node& node) {
  auto value = own_padding(node);
  const ir::Node* pad = value ? sole_producer(editor, node.input(0), "Pad") : nullptr;
  if (!pad) return;
  auto pads = spatial_pads(editor, *pad, *value);
  if (!pads) return;
  std::vector<int64_t> own = node.ints_attribute("pads", std::vector<int64_t>(pads->size(), 0));
  if (own.size() != pads->size()) return;
  constexpr int64_t most = int64_t{1} << 30;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] > most || (*pads)[i] > most) return;
    own[i] += (*pads)[i];
  }
  editor.rewrite(node, [&](Patch& patch) {
    ir::Node& merged = node.op_type == "Conv"
                           ? patch.add_like(node, {pad->input(0), node.input(1), node.input(2)}, {{"pads", own}})
                           : patch.add_like(node, {pad->input(0)}, {{"pads", own}, {"count_include_pad", 1}});
    patch.replace(node, *merged.output(0));
  });
}

}  // namespace tenon::passes
