#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::ops {

// One axis of a Slice, as the model gives it.
struct SliceRange {
  int64_t start, end, step;  // step is not 0

  // How many elements it takes from an axis of `size`; `start` becomes the index of the first.
  int64_t count_for(int64_t size);
};

}  // namespace tenon::ops
