// Tensors of integers that count along their axes, as the indices of a slice do that exporters write out.
#pragma once

#include <optional>
#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

// A tensor of integers, each of which is `start` and, per axis, a stride times the place along it.
struct Grid {
  struct Axis {
    Dim size, stride = 0;
    ir::Value* places = nullptr;  // 0, 1, 2, … as a tensor of rank 1, where there is one and the stride is 1
  };
  Dim start;
  SmallVector<Axis, 6> axes;
};

// Whether there is more than one place along it.
inline bool is_spread(const Grid::Axis& axis) { return !axis.size.is(1); }

// Nullopt where the value is none, or is not known to be one.
std::optional<Grid> grid_of(Editor& editor, ir::Value* value);
// The indices of a GatherND or ScatterND, [..., axes of the data]: for each of these a grid [..., 1]. They are joined
// by a Concat, or a constant. Empty where any is no grid.
std::vector<Grid> grids_of_indices(Editor& editor, ir::Value* indices);

}  // namespace tenon::passes
