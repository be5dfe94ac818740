#pragma once

#include "tenon/shape.h"

namespace tenon::ops {

// A shape seen from one of its axes: [outer, size, inner]. A scalar counts as one element on one axis.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  // `axis` may count from the end and must be in range.
  AxisView(const Shape& shape, int64_t axis) {
    if (shape.rank() == 0) return;
    int at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    outer = shape.elements(0, at);
    size = shape[at];
    inner = shape.elements(at + 1, shape.rank());
  }
};

}  // namespace tenon::ops
