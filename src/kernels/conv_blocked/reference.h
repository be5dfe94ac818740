// What tests compare convolutions in blocked layout with.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/conv_blocked/conv_blocked.h"

namespace tenon::kernels {

// Index of an element of an image [channels / lanes, height, width, lanes].
inline int64_t index(int64_t c, int64_t h, int64_t w, const int64_t (&size)[3], int64_t lanes) {
  return ((c / lanes * size[1] + h) * size[2] + w) * lanes + c % lanes;
}

// The activation that the reference knows.
inline void square(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

inline std::vector<double> reference(const ConvShape& s, bool plain, const std::vector<float>& x,
                                     const std::vector<float>& weights, const ConvEpilogue& e) {
  const int64_t block = conv_block(), in = s.in_channels / s.groups;
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
                const int64_t ic = s.groups > 1 ? oc : c;
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
