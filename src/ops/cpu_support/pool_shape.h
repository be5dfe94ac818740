// From tensors and window attributes to the description that pooling kernels take.
#pragma once

#include <algorithm>

#include "base/checked.h"
#include "kernels/pool/pool.h"
#include "ops/window.h"
#include "tenon/shape.h"

namespace tenon::ops {

// `x` and `y` [N, C, …] of shapes that inference has checked.
inline kernels::PoolShape pool_shape(const WindowAttributes& window, const Shape& x, const Shape& y) {
  kernels::PoolShape s;
  s.planes = checked_mul(x[0], x[1]);
  int spatial = x.rank() - 2, first = most_spatial - spatial;
  for (int d = 0; d < spatial; ++d) {
    WindowAxis axis = window.axis(d, spatial);
    auto [begin, end] = axis.pads(x[d + 2], y[d + 2]);
    s.input[first + d] = x[d + 2];
    s.output[first + d] = y[d + 2];
    s.kernel[first + d] = axis.kernel.value();
    s.stride[first + d] = axis.stride;
    s.dilation[first + d] = axis.dilation;
    s.pad_begin[first + d] = begin;
    s.pad_end[first + d] = end;
    // Taps beyond the padded image read nothing; without them the kernel's loops are as short as the image.
    int64_t padded = checked_add(x[d + 2], checked_add(begin, end));
    s.kernel[first + d] = std::min(s.kernel[first + d], padded / axis.dilation + 1);
  }
  return s;
}

}  // namespace tenon::ops
