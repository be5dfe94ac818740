// Where the elements of a value come from when only Reshape, Transpose and the like are between it and another one.
#pragma once

#include <optional>
#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

// A part of an axis of the source: where in memory it is, from outer to inner, and how large.
struct AxisPart {
  double begin, end;  // axis 2 of the source is from 2 to 3; parts of it are between
  Dim size;

  bool is_before(const AxisPart& other) const { return begin < other.begin; }
};

// One of several along an axis, taken by a Gather of one index or a Split.
struct Selection {
  AxisPart part;
  int64_t index;
};

struct Moves {
  ir::Value* source = nullptr;
  std::vector<std::vector<AxisPart>>
      axes;  // of the value: each has parts of the source, outer ones first; none: size 1
  std::vector<Selection> selections;
};

// What was moved to make the value; nullopt where the sizes are not known well enough.
std::optional<Moves> moves_of(Editor& editor, ir::Value* value);

}  // namespace tenon::passes
