// What the inner loops of depthwise convolutions get whose kernels are 3, 5 or 7 wide, with stride 1 or 2 and without
// dilation along rows: lines of pixels side by side, which share the columns of the image that they read.
#pragma once

#include <cstdint>

namespace tenon::kernels {

inline constexpr int most_row_pixels = 7, most_row_lines = 3;

// Lines of `tiles` tiles of pixels, one tile beside the other. Line l reads the row of the image at
// rows[l * kernel_rows + k] for every row k of the kernel from first_rows[l] to end_rows[l], neither of which grows
// with l, and its pixel i columns first_column + i * stride + k of it for every column k of the kernel. Columns outside
// of the image are left out. Number is float, or uint16_t for half precision.
template <class Number>
struct DepthwiseRowTile {
  const Number* const* rows;  // there is one more, which nothing is read from; those outside of the image are zeros
  const int64_t *first_rows, *end_rows;
  int64_t kernel_rows;
  int64_t lines;  // a multiple of those that are worked on at once
  int64_t tiles;
  int64_t width;  // of the image
  int64_t first_column;
  const Number* weights;   // [row][column][block]
  const Number* start;     // what the sums start with: `block` numbers
  Number* y;               // pixels of a line are side by side
  int64_t y_step;          // from line to line
  const Number* residual;  // laid out as y is; null adds nothing
  bool clamp;              // to [lo, hi]; NaN stays NaN
  float lo;
  float hi;
};

// For one width of the kernel and one stride.
template <class Number>
struct DepthwiseRowKernels {
  int pixels, lines;  // of a tile, lines at once: at most
  using Function = void (*)(const DepthwiseRowTile<Number>& tile);
  // `pixels` pixels that read no columns outside of the image or, where the second index says so, `left` at the left
  // and, where the third does, `right` at the right. By lines at once, from 1 on.
  Function known[most_row_lines + 1][2][2];
  int left, right;
  Function any[most_row_pixels + 1];  // one line at once and one tile, by the number of pixels, from 1 on
};

template <class Number>
struct DepthwiseRowTable {
  DepthwiseRowKernels<Number> kernels[5];
  // Null where there are none.
  const DepthwiseRowKernels<Number>* find(int64_t width, int64_t stride) const {
    if (stride == 1 || stride == 2) {
      if (width == 3) return &kernels[stride - 1];
      if (width == 5) return &kernels[stride + 1];
    }
    return width == 7 && stride == 1 ? &kernels[4] : nullptr;
  }
};

}  // namespace tenon::kernels
