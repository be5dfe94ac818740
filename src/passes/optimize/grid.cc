#include "passes/optimize/grid.h"

#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/fusion.h"

namespace tenon::passes {
namespace {

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

// Empty where there are too many to look at.
std::vector<int64_t> integers(const Tensor& tensor) {
  constexpr int64_t most = 1 << 22;
  if (tensor.elements() > most) return {};
  if (tensor.type() == ElementType::int64) return {tensor.data<int64_t>().begin(), tensor.data<int64_t>().end()};
  return {tensor.data<int32_t>().begin(), tensor.data<int32_t>().end()};
}

// The grid of this shape that every `step`th number from `first` on is, if it is one.
std::optional<Grid> counted(std::span<const int64_t> numbers, size_t first, const SymbolicShape& shape,
                            size_t step = 1) {
  if (first >= numbers.size()) return std::nullopt;
  const int64_t start = numbers[first];
  Grid grid = number_grid(start, shape);
  size_t apart = step;
  for (size_t i = shape.size(); i-- > 0; apart *= static_cast<size_t>(shape[i].value()))
    if (is_spread(grid.axes[i])) grid.axes[i].stride = numbers[first + apart] - start;
  std::vector<int64_t> place(shape.size());
  int64_t expected = start;
  for (size_t at = first; at < numbers.size(); at += step) {
    if (numbers[at] != expected) return std::nullopt;
    for (size_t i = shape.size(); i-- > 0;) {
      const int64_t size = shape[i].value(), stride = grid.axes[i].stride.value();
      expected += stride;
      if (++place[i] < size) break;
      expected -= stride * size;
      place[i] = 0;
    }
  }
  return grid;
}

std::optional<Grid> grid_of(Editor& editor, ir::Value* value, int depth) {
  constexpr int deepest = 16;
  const SymbolicShape* shape = editor.shape(value);
  const ElementType type = element_type(editor, value);
  if (!shape || depth > deepest || (type != ElementType::int64 && type != ElementType::int32)) return std::nullopt;
  if (auto numbers = editor.values(value); numbers && numbers->size() == 1) return number_grid((*numbers)[0], *shape);
  if (const Tensor* constant = Editor::constant(value)) {
    auto grid = counted(integers(*constant), 0, *shape);
    if (grid && shape->size() == 1 && grid->start.is(0) && grid->axes[0].stride.is(1)) grid->axes[0].places = value;
    return grid;
  }
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

}  // namespace

std::optional<Grid> grid_of(Editor& editor, ir::Value* value) { return grid_of(editor, value, 0); }

std::vector<Grid> grids_of_indices(Editor& editor, ir::Value* indices) {
  const SymbolicShape* shape = editor.shape(indices);
  if (!shape || shape->empty() || element_type(editor, indices) != ElementType::int64) return {};
  std::vector<Grid> grids;
  if (const Tensor* constant = Editor::constant(indices)) {
    const auto step = static_cast<size_t>(constant->dim(constant->rank() - 1));
    SymbolicShape of_one = *shape;
    of_one.back() = 1;
    const std::vector<int64_t> numbers = integers(*constant);
    for (size_t i = 0; i < step; ++i) {
      auto grid = counted(numbers, i, of_one, step);
      if (!grid) return {};
      grids.push_back(std::move(*grid));
    }
    return grids;
  }
  const ir::Node* columns = producer(indices, "Concat");
  const int64_t last = std::ssize(*shape) - 1, axis = columns ? columns->int_attribute("axis", 0) : 0;
  if (!columns || (axis != -1 && axis != last)) return {};
  for (ir::Value* column : columns->inputs()) {
    auto grid = grid_of(editor, column);
    if (!grid || grid->axes.empty() || !grid->axes.back().size.is(1)) return {};
    grids.push_back(std::move(*grid));
  }
  return grids;
}

}  // namespace tenon::passes
