#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// A tensor of integers, each of which is `start` and, per axis, a stride times the place along it.
struct Grid {
  struct Axis {
    Dim size, stride = 0;
    ir::Value* places = nullptr;  // 0, 1, 2, … as a tensor of rank 1, where there is one and the stride is 1
  };
  Dim start;
  SmallVector<Axis, 6> axes;
};

bool is_spread(const Grid::Axis& axis) { return !axis.size.is(1); }

Grid number_grid(const Dim& number, const SymbolicShape& shape) {
  Grid grid{number, {}};
  for (const Dim& size : shape) grid.axes.push_back({size});
  return grid;
}

// The grid with axes of size 1 added and removed.
std::optional<Grid> reshaped(const Grid& grid, const SymbolicShape& shape) {
  Grid result = number_grid(grid.start, shape);
  auto next = grid.axes.begin();
  for (Grid::Axis& axis : result.axes) {
    if (!is_spread(axis)) continue;
    next = std::find_if(next, grid.axes.end(), is_spread);
    if (next == grid.axes.end() || next->size != axis.size) return std::nullopt;
    axis = *next++;
  }
  return std::none_of(next, grid.axes.end(), is_spread) ? std::optional(result) : std::nullopt;
}

std::optional<Grid> broadcast(const Grid& grid, const SymbolicShape& shape) {
  if (grid.axes.size() > shape.size()) return std::nullopt;
  Grid result = number_grid(grid.start, shape);
  const size_t first = shape.size() - grid.axes.size();
  for (size_t i = 0; i < grid.axes.size(); ++i) {
    if (!is_spread(grid.axes[i])) continue;
    if (grid.axes[i].size != shape[first + i]) return std::nullopt;
    result.axes[first + i] = grid.axes[i];
  }
  return result;
}

std::optional<Grid> sum(const Grid& a, const Grid& b) {
  Grid result{a.start + b.start, a.axes};
  for (size_t i = 0; i < a.axes.size(); ++i) {
    if (b.axes[i].stride.is(0)) continue;
    if (!a.axes[i].stride.is(0)) return std::nullopt;
    result.axes[i] = b.axes[i];
  }
  return result;
}

std::optional<Grid> product(const Grid& a, const Grid& b) {
  auto is_number = [](const Grid& grid) {
    return std::ranges::all_of(grid.axes, [](const Grid::Axis& axis) { return axis.stride.is(0); });
  };
  if (!is_number(b)) return is_number(a) ? product(b, a) : std::nullopt;
  Grid result{a.start * b.start, a.axes};
  for (Grid::Axis& axis : result.axes) {
    if (!b.start.is(1)) axis.places = nullptr;
    axis.stride = axis.stride * b.start;
  }
  return result;
}

std::optional<Grid> grid_of(Editor& editor, ir::Value* value, int depth = 0) {
  constexpr int deepest = 16;
  const SymbolicShape* shape = editor.shape(value);
  const ElementType type = element_type(editor, value);
  if (!shape || depth > deepest || (type != ElementType::int64 && type != ElementType::int32)) return std::nullopt;
  if (auto numbers = editor.values(value); numbers && numbers->size() == 1) return number_grid((*numbers)[0], *shape);
  const ir::Node* node = value->producer();
  if (!node || !node->domain.empty()) return std::nullopt;
  auto input = [&](size_t i) { return grid_of(editor, node->input(i), depth + 1); };
  if (node->op_type == "Range") {
    const auto first = input(0), step = input(2);
    if (!first || !step) return std::nullopt;
    const bool counts = first->start.is(0) && step->start.is(1);
    return Grid{first->start, {{(*shape)[0], step->start, counts ? value : nullptr}}};
  }
  if (node->op_type == "Unsqueeze" || node->op_type == "Squeeze" || node->op_type == "Reshape") {
    const auto grid = input(0);
    return grid ? reshaped(*grid, *shape) : std::nullopt;
  }
  if (node->op_type == "Expand") {
    const auto grid = input(0);
    return grid ? broadcast(*grid, *shape) : std::nullopt;
  }
  if (node->op_type == "Add" || node->op_type == "Mul") {
    const auto a = input(0), b = a ? input(1) : std::nullopt;
    if (!a || !b) return std::nullopt;
    const auto left = broadcast(*a, *shape), right = broadcast(*b, *shape);
    if (!left || !right) return std::nullopt;
    return node->op_type == "Add" ? sum(*left, *right) : product(*left, *right);
  }
  return std::nullopt;
}

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

// Of a GatherND whose index per axis is a tensor of its own.
std::optional<Walk> walk_of_gather_nd(Editor& editor, const ir::Node& node) {
  const SymbolicShape *shape = editor.shape(node.input(0)), *indices = editor.shape(node.input(1));
  const ir::Node* columns = producer(node.input(1), "Concat");
  if (!shape || !indices || !columns || node.int_attribute("batch_dims", 0) != 0) return std::nullopt;
  const int64_t axis = columns->int_attribute("axis", 0), last = std::ssize(*indices) - 1;
  if ((axis != -1 && axis != last) || columns->input_count() != shape->size()) return std::nullopt;
  Walk walk{node.input(0), {}, {}};
  std::vector<bool> is_read(indices->size());
  std::ptrdiff_t before = -1;
  for (size_t i = 0; i < shape->size(); ++i) {
    const auto grid = grid_of(editor, columns->input(i));
    if (!grid || !grid->start.is(0) || grid->axes.empty() || !grid->axes.back().size.is(1)) return std::nullopt;
    auto moves = [](const Grid::Axis& a) { return !a.stride.is(0); };
    const auto found = std::ranges::find_if(grid->axes, moves);
    if (found == grid->axes.end()) {
      if (!(*shape)[i].is(1)) return std::nullopt;
      continue;
    }
    const std::ptrdiff_t place = found - grid->axes.begin();
    if (!found->stride.is(1) || place <= before || std::ranges::count_if(grid->axes, moves) != 1) return std::nullopt;
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
