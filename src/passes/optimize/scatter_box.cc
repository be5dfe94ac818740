#include "passes/match.h"
#include "passes/optimize/grid.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// Places of one axis.
struct Range {
  Dim begin, size;
};

// Where a ScatterND writes, along the first axes of its data: empty where that is no box, whose corner is written
// first.
std::vector<Range> written_box(Editor& editor, const ir::Node& scatter) {
  const SymbolicShape* indices = editor.shape(scatter.input(1));
  if (!indices) return {};
  const std::vector<Grid> grids = grids_of_indices(editor, scatter.input(1));
  if (grids.size() + 1 != indices->size()) return {};
  std::vector<Range> box;
  for (size_t axis = 0; axis < grids.size(); ++axis) {
    const Grid& grid = grids[axis];
    if (grid.axes.size() != indices->size()) return {};
    for (size_t i = 0; i < grids.size(); ++i) {
      const bool moves = i == axis && !(*indices)[i].is(1);
      if (!grid.axes[i].stride.is(moves ? 1 : 0)) return {};
    }
    box.push_back({grid.start, (*indices)[axis]});
  }
  return box;
}

bool is_within(const Range& range, const Dim& size) {
  return range.begin.is_known() && range.size.is_known() && size.is_known() && range.begin.value() >= 0 &&
         range.begin.value() + range.size.value() <= size.value();
}

}  // namespace

void fill_boxes(Editor& editor, ir::Node& scatter) {
  // Of larger data, what is not written would be copied for little.
  constexpr double least_share = 0.25;
  if (scatter.op_type != "ScatterND" || !scatter.domain.empty() ||
      scatter.string_attribute("reduction", "none") != "none")
    return;
  ir::Value *data = scatter.input(0), *updates = scatter.input(2);
  const SymbolicShape* shape = editor.shape(data);
  if (!shape || editor.rank(updates) != std::ssize(*shape)) return;
  const std::vector<Range> box = written_box(editor, scatter);
  if (box.empty() || box.size() > shape->size()) return;
  std::vector<size_t> parted;  // axes that are not written as a whole
  double share = 1;
  for (size_t axis = 0; axis < box.size(); ++axis) {
    const Dim& size = (*shape)[axis];
    if (box[axis].begin.is(0) && box[axis].size == size) continue;
    if (!is_within(box[axis], size)) return;
    parted.push_back(axis);
    share *= static_cast<double>(box[axis].size.value()) / static_cast<double>(size.value());
  }
  if (share < least_share) return;
  if (parted.empty() && !editor.can_replace(*scatter.output(0), *updates)) return;
  editor.rewrite(scatter, [&](Patch& patch) {
    const auto part = [&](ir::Value* of, int64_t begin, int64_t end, size_t axis) {
      return patch.add("Slice", {of, patch.ints({begin}), patch.ints({end}), patch.ints({static_cast<int64_t>(axis)})});
    };
    // What the box is part of, from all data to what differs from it along one axis only.
    std::vector<ir::Value*> around{data};
    for (size_t i = 0; i + 1 < parted.size(); ++i) {
      const int64_t begin = box[parted[i]].begin.value();
      around.push_back(part(around.back(), begin, begin + box[parted[i]].size.value(), parted[i]));
    }
    ir::Value* result = updates;
    for (size_t i = parted.size(); i-- > 0;) {
      const size_t axis = parted[i];
      const int64_t begin = box[axis].begin.value(), end = begin + box[axis].size.value(),
                    size = (*shape)[axis].value();
      std::vector<ir::Value*> parts;
      if (begin > 0) parts.push_back(part(around[i], 0, begin, axis));
      parts.push_back(result);
      if (end < size) parts.push_back(part(around[i], end, size, axis));
      result = patch.add("Concat", parts, {{"axis", static_cast<int64_t>(axis)}});
    }
    patch.replace(scatter, *result);
  });
}

}  // namespace tenon::passes
