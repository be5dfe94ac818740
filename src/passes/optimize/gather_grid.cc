#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/grid.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// How a gather reads its data: per axis of the data that has more than one place, the axis of the result that goes
// along it.
struct Walk {
  ir::Value* data;
  std::vector<size_t> data_axes;
  std::vector<Grid::Axis> along;
};

std::vector<size_t> spread_axes(const SymbolicShape& shape) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is(1)) axes.push_back(i);
  }
  return axes;
}

// Of a Gather from all elements in a row, by their numbers.
std::optional<Walk> walk_of_gather(Editor& editor, const ir::Node& node) {
  const SymbolicShape* row = editor.shape(node.input(0));
  if (!row || row->empty() || node.int_attribute("axis", 0) != 0) return std::nullopt;
  if (!std::all_of(row->begin() + 1, row->end(), [](const Dim& size) { return size.is(1); })) return std::nullopt;
  const ir::Node* flatten = node.input(0)->producer();
  if (!flatten || !flatten->domain.empty() || (flatten->op_type != "Flatten" && flatten->op_type != "Reshape"))
    return std::nullopt;
  const SymbolicShape* shape = editor.shape(flatten->input(0));
  const auto grid = shape ? grid_of(editor, node.input(1)) : std::nullopt;
  if (!grid || !grid->start.is(0)) return std::nullopt;
  Walk walk{flatten->input(0), spread_axes(*shape), {}};
  std::ranges::copy_if(grid->axes, std::back_inserter(walk.along), is_spread);
  if (walk.along.size() != walk.data_axes.size()) return std::nullopt;
  Dim stride = 1;
  int shorter = 0;
  for (size_t i = walk.along.size(); i-- > 0;) {
    const Dim& size = (*shape)[walk.data_axes[i]];
    if (walk.along[i].stride != stride) return std::nullopt;
    if (walk.along[i].size != size) ++shorter;
    stride = stride * size;
  }
  // One that is too long leaves the row if all others go to their ends, as it must leave its axis. Two need not.
  return shorter <= 1 ? std::optional(walk) : std::nullopt;
}

// Of a GatherND whose indices are a grid for each axis.
std::optional<Walk> walk_of_gather_nd(Editor& editor, const ir::Node& node) {
  const SymbolicShape *shape = editor.shape(node.input(0)), *indices = editor.shape(node.input(1));
  if (!shape || !indices || node.int_attribute("batch_dims", 0) != 0) return std::nullopt;
  const std::vector<Grid> grids = grids_of_indices(editor, node.input(1));
  if (grids.size() != shape->size()) return std::nullopt;
  Walk walk{node.input(0), {}, {}};
  std::vector<bool> is_read(indices->size());
  std::ptrdiff_t before = -1;
  for (size_t i = 0; i < shape->size(); ++i) {
    const Grid& grid = grids[i];
    if (!grid.start.is(0)) return std::nullopt;
    auto moves = [](const Grid::Axis& a) { return !a.stride.is(0); };
    const auto found = std::ranges::find_if(grid.axes, moves);
    if (found == grid.axes.end()) {
      if (!(*shape)[i].is(1)) return std::nullopt;
      continue;
    }
    const std::ptrdiff_t place = found - grid.axes.begin();
    if (!found->stride.is(1) || place <= before || std::ranges::count_if(grid.axes, moves) != 1) return std::nullopt;
    is_read[static_cast<size_t>(place)] = true;
    before = place;
    walk.data_axes.push_back(i);
    walk.along.push_back(*found);
  }
  for (size_t i = 0; i + 1 < indices->size(); ++i) {
    if (!is_read[i] && !(*indices)[i].is(1)) return std::nullopt;
  }
  return walk;
}

}  // namespace

void gather_along_axes(Editor& editor, ir::Node& node) {
  if (!node.domain.empty() || node.input_count() != 2 || editor.rank(node.output(0)) < 0) return;
  std::optional<Walk> walk;
  if (node.op_type == "Gather") walk = walk_of_gather(editor, node);
  if (node.op_type == "GatherND") walk = walk_of_gather_nd(editor, node);
  if (!walk) return;
  const SymbolicShape &from = *editor.shape(walk->data), &to = *editor.shape(node.output(0));
  for (size_t i = 0; i < walk->along.size(); ++i) {
    if (walk->along[i].size != from[walk->data_axes[i]] && !walk->along[i].places) return;
  }
  // Axes that the data has and the result has not, and the other way round.
  std::vector<int64_t> gone, added;
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::ranges::find(walk->data_axes, i) == walk->data_axes.end()) gone.push_back(static_cast<int64_t>(i));
  }
  size_t next = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (next < walk->along.size() && to[i] == walk->along[next].size && !to[i].is(1))
      ++next;
    else
      added.push_back(static_cast<int64_t>(i));
  }
  if (next != walk->along.size()) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* data = walk->data;
    for (size_t i = 0; i < walk->along.size(); ++i) {
      const Grid::Axis& along = walk->along[i];
      if (along.size != from[walk->data_axes[i]])
        data = patch.add("Gather", {data, along.places}, {{"axis", static_cast<int64_t>(walk->data_axes[i])}});
    }
    if (!gone.empty()) data = patch.add("Squeeze", {data, patch.ints(gone)});
    if (!added.empty()) data = patch.add("Unsqueeze", {data, patch.ints(added)});
    patch.replace(node, *data);
  });
}

}  // namespace tenon::passes
