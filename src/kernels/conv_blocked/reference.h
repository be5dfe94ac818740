// What tests compare convolutions in blocked layout with.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/conv_blocked/conv_blocked.h"

namespace tenon::kernels {

// Channels are given in blocks, or as they are where the input is plain.
struct BlockedCase {
  int64_t batch, in, out;
  bool plain, depthwise;
  int64_t height, width, kernel[2], stride[2], dilation[2], pad_begin[2], pad_end[2];
  int64_t groups = 1;

  ConvShape shape(int64_t block = conv_block()) const {
    ConvShape s;
    s.batch = batch, s.in_channels = plain ? in : in * block, s.out_channels = out * block;
    s.groups = depthwise ? s.in_channels : groups;
    s.input[1] = height, s.input[2] = width;
    for (int d = 0; d < 2; ++d) {
      s.kernel[d + 1] = kernel[d], s.stride[d + 1] = stride[d], s.dilation[d + 1] = dilation[d];
      s.pad[d + 1] = pad_begin[d];
      const int64_t reach = (kernel[d] - 1) * dilation[d] + 1;
      s.output[d + 1] = (s.input[d + 1] + pad_begin[d] + pad_end[d] - reach) / stride[d] + 1;
    }
    return s;
  }
};

// Square windows over what a convolution in blocked layout gives, of one block of channels.
inline PoolShape pool_windows(const ConvShape& conv, int64_t kernel, int64_t stride, int64_t pad, int64_t block) {
  PoolShape s;
  s.input[2] = s.output[2] = block;
  for (int d : {0, 1}) {
    s.input[d] = conv.output[d + 1], s.kernel[d] = kernel, s.stride[d] = stride, s.pad_begin[d] = pad;
    const int64_t room = s.input[d] + 2 * pad - kernel;
    s.output[d] = room < 0 ? 0 : room / stride + 1;
  }
  return s;
}

// The maxima of these windows of images in blocked layout.
inline std::vector<float> pooled(ThreadPool& pool, PoolShape windows, int64_t planes, const std::vector<float>& x) {
  windows.planes = planes;
  std::vector<float> y(static_cast<size_t>(planes * windows.output_size()));
  max_pool(pool, windows, x.data(), y.data());
  return y;
}

inline const BlockedCase blocked_cases[] = {
    {1, 1, 1, false, false, 5, 7, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 3, 2, false, false, 14, 15, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {1, 2, 3, false, false, 9, 11, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 2, 3, false, false, 9, 11, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
    {2, 1, 2, false, false, 20, 13, {3, 5}, {1, 1}, {2, 3}, {0, 2}, {3, 1}},
    {1, 1, 1, false, false, 1, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 1, false, false, 2, 2, {3, 3}, {1, 1}, {3, 3}, {6, 6}, {6, 6}},
    {1, 4, 1, false, false, 7, 7, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 130, 1, false, false, 3, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 1, false, false, 70, 61, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 3, 2, true, false, 30, 31, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}},
    {2, 1, 1, true, false, 8, 9, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 5, 1, true, false, 6, 5, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {2, 2, 2, false, true, 13, 17, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 3, 3, false, true, 23, 20, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 1, false, true, 7, 9, {5, 5}, {2, 3}, {1, 1}, {2, 1}, {2, 3}},
    {1, 1, 1, false, true, 9, 9, {2, 4}, {1, 2}, {2, 2}, {0, 1}, {1, 0}},
    {1, 2, 2, false, true, 14, 14, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},
    {2, 1, 1, false, true, 16, 14, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
    {1, 1, 1, false, true, 7, 7, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},
    {1, 1, 1, false, true, 8, 8, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},
    {1, 1, 1, false, true, 10, 23, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}},
    {1, 1, 1, false, true, 9, 14, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 0}},
    {1, 1, 1, false, true, 9, 15, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
    {1, 1, 1, false, true, 5, 18, {9, 3}, {1, 1}, {2, 1}, {8, 1}, {8, 1}},
    {1, 1, 1, false, true, 3, 9, {3, 3}, {1, 1}, {1, 1}, {5, 6}, {6, 5}},
    {1, 1, 1, false, true, 6, 31, {1, 5}, {3, 2}, {1, 1}, {0, 2}, {0, 1}},
    {1, 1, 1, false, true, 4, 6, {7, 7}, {2, 1}, {1, 1}, {3, 3}, {3, 3}},
    {1, 1, 1, false, true, 1, 2, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},
    {1, 1, 1, false, true, 19, 120, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 1, false, true, 41, 50, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
    {1, 1, 1, false, true, 40, 32, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 1, false, true, 2, 2, {3, 3}, {1, 1}, {3, 3}, {6, 6}, {6, 6}},
    {1, 3, 3, false, false, 9, 11, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3},
    {2, 4, 8, false, false, 13, 9, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2},
    {1, 6, 2, false, false, 14, 20, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, 2},
    {1, 4, 12, false, false, 31, 17, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 4},
    // Dilated: lines in parts; too narrow ones; taps that some outputs do not read, or no output; pixels that read
    // none.
    {2, 3, 3, false, false, 16, 17, {3, 3}, {1, 1}, {12, 12}, {12, 12}, {12, 12}},
    {1, 9, 1, false, false, 13, 13, {3, 3}, {1, 1}, {12, 12}, {12, 12}, {12, 12}},
    {1, 1, 2, false, false, 20, 31, {3, 5}, {2, 1}, {3, 2}, {6, 4}, {6, 4}},
    {1, 2, 1, false, false, 8, 8, {3, 3}, {1, 1}, {12, 3}, {12, 3}, {12, 3}},
    {1, 1, 1, false, false, 5, 5, {3, 3}, {1, 1}, {4, 4}, {9, 9}, {9, 9}},
    {1, 4, 4, false, false, 18, 18, {3, 3}, {1, 1}, {6, 6}, {6, 6}, {6, 6}, 2},
};

// Index of an element of an image [channels / lanes, height, width, lanes].
inline int64_t index(int64_t c, int64_t h, int64_t w, const int64_t (&size)[3], int64_t lanes) {
  return ((c / lanes * size[1] + h) * size[2] + w) * lanes + c % lanes;
}

// The activation that the reference knows.
inline void square(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

inline std::vector<double> reference(const ConvShape& s, bool plain, const std::vector<float>& x,
                                     const std::vector<float>& weights, const ConvEpilogue& e,
                                     int64_t block = conv_block()) {
  const int64_t in = s.in_channels / s.groups;
  std::vector<double> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oc = 0; oc < s.out_channels; ++oc)
      for (int64_t h = 0; h < s.output[1]; ++h)
        for (int64_t w = 0; w < s.output[2]; ++w) {
          double sum = e.bias ? e.bias[oc] : 0;
          for (int64_t c = 0; c < in; ++c)
            for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
              for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
                const int64_t ih = h * s.stride[1] - s.pad[1] + kh * s.dilation[1];
                const int64_t iw = w * s.stride[2] - s.pad[2] + kw * s.dilation[2];
                if (ih < 0 || ih >= s.input[1] || iw < 0 || iw >= s.input[2]) continue;
                const int64_t ic = oc / (s.out_channels / s.groups) * in + c;
                sum += double{x[static_cast<size_t>(n * s.in_channels * s.input_size() +
                                                    index(ic, ih, iw, s.input, plain ? 1 : block))]} *
                       weights[static_cast<size_t>(((oc * in + c) * s.kernel[1] + kh) * s.kernel[2] + kw)];
              }
          const int64_t at = n * s.out_channels * s.output_size() + index(oc, h, w, s.output, block);
          if (e.residual) sum += e.residual[at];
          sum = std::min<double>(std::max<double>(sum, e.lo), e.hi);
          y[static_cast<size_t>(at)] = e.activation ? sum * sum : sum;
        }
  return y;
}

}  // namespace tenon::kernels
