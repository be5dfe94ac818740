#pragma once

#include <span>
#include <vector>

#include "tenon/shape.h"

namespace tenon::ops {

// How a reduction walks its input: neighbouring axes that are all kept or all reduced count as one.
struct ReducePlan {
  struct Axis {
    int64_t size, stride;
  };

  SmallVector<Axis, 4> kept;     // outermost first, without the innermost when it is kept
  SmallVector<Axis, 4> reduced;  // outermost first, without the innermost when it is reduced
  int64_t run = 1;               // adjacent elements to reduce; 1 when the innermost axis is kept
  int64_t inner = 1;             // adjacent elements to keep; 1 when the innermost axis is reduced
  int64_t outer = 1;             // product of kept
  int64_t count = 1;             // elements reduced to one

  ReducePlan(const Shape& shape, std::span<const int64_t> axes);

  // Where the input of number `i` of the kept axes begins.
  int64_t first(int64_t i) const;

  // Calls f(offset) for each combination of the outer reduced axes.
  template <typename F>
  void for_each_reduced(F&& f) const {
    if (count == 0) return;
    visit(0, 0, f);
  }

 private:
  template <typename F>
  void visit(size_t axis, int64_t offset, F& f) const {
    if (axis == reduced.size()) return f(offset);
    for (int64_t i = 0; i < reduced[axis].size; ++i) visit(axis + 1, offset + i * reduced[axis].stride, f);
  }
};

}  // namespace tenon::ops
