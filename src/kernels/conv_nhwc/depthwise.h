// Depthwise convolutions of images whose channels come last.
#pragma once

#include "base/rounding.h"
#include "kernels/conv_nhwc/conv_nhwc.h"

namespace tenon::kernels {

// How a depthwise convolution computes neighbouring outputs at once: the pixels they read in each row of the window, in
// groups of four. Otherwise what one output reads is a list of pixels, in groups of four.
struct DepthwiseWindow {
  explicit DepthwiseWindow(const ConvShape& s) : rows(s.kernel[1]), kernel(s.kernel[2]) {
    const bool is_dense = s.stride[2] == 1 && s.dilation[2] == 1;
    if (is_dense && kernel == 5) outputs = 4;
    if (is_dense && (kernel == 3 || kernel == 7)) outputs = 2;
    width = kernel + outputs - 1;
    quads = divide_up(rows * width, 4);
  }
  // Which tap pixel i is to output j; -1: none.
  int64_t tap(int64_t i, int64_t j) const {
    const int64_t row = i / width, column = i % width - j;
    return column >= 0 && column < kernel && row < rows ? row * kernel + column : -1;
  }

  int64_t rows, kernel, outputs = 1, width, quads;
};

// What conv_nhwc says, with as many groups as channels.
void convolve_depthwise(ThreadPool& pool, const ConvShape& shape, const uint8_t* x, uint8_t outside,
                        const NhwcConvWeights& weights, const NhwcRequantization& requantization, uint8_t* y);

}  // namespace tenon::kernels
