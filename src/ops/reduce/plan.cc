#include "ops/reduce/plan.h"

namespace tenon::ops {

ReducePlan::ReducePlan(const Shape& shape, std::span<const int64_t> axes) {
  std::vector<bool> is_reduced(static_cast<size_t>(shape.rank()));
  for (int64_t axis : axes) is_reduced[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  SmallVector<Axis, 6> merged;  // innermost first
  SmallVector<bool, 6> flags;
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    bool flag = is_reduced[static_cast<size_t>(axis)];
    if (shape[axis] != 1) {
      if (!merged.empty() && flags.back() == flag) {
        merged.back().size *= shape[axis];
      } else {
        merged.push_back({shape[axis], stride});
        flags.push_back(flag);
      }
    }
    stride *= shape[axis];
  }
  for (size_t k = merged.size(); k-- > 0;) {
    (flags[k] ? count : outer) *= merged[k].size;
    if (k > 0) (flags[k] ? reduced : kept).push_back(merged[k]);
  }
  if (merged.empty()) return;
  if (flags[0]) {
    run = merged[0].size;
  } else {
    inner = merged[0].size;
    outer = 1;
    for (const Axis& axis : kept) outer *= axis.size;
  }
}

int64_t ReducePlan::first(int64_t i) const {
  int64_t offset = 0;
  for (size_t k = kept.size(); k-- > 0;) {
    offset += i % kept[k].size * kept[k].stride;
    i /= kept[k].size;
  }
  return offset;
}

}  // namespace tenon::ops
