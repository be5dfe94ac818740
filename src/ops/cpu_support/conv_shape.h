// From tensors and window attributes to the description that convolution kernels take.
#pragma once

#include "base/checked.h"
#include "kernels/conv/conv.h"
#include "ops/window.h"
#include "tenon/shape.h"

namespace tenon::ops {

// `x` [N, C, …], `w` [M, C / groups, …] and `y` [N, M, …] of shapes that inference has checked.
inline kernels::ConvShape conv_shape(const WindowAttributes& window, int64_t groups, const Shape& x, const Shape& w,
                                     const Shape& y) {
  kernels::ConvShape s;
  s.batch = x[0];
  s.in_channels = x[1];
  s.out_channels = y[1];
  s.groups = groups;
  int spatial = x.rank() - 2, first = most_spatial - spatial;
  int64_t padded = s.in_channels;
  for (int d = 0; d < spatial; ++d) {
    WindowAxis axis = window.axis(d, spatial, w[d + 2]);
    auto [begin, end] = axis.pads(x[d + 2], y[d + 2]);
    s.input[first + d] = x[d + 2];
    s.output[first + d] = y[d + 2];
    s.kernel[first + d] = w[d + 2];
    s.stride[first + d] = axis.stride;
    s.dilation[first + d] = axis.dilation;
    s.pad[first + d] = begin;
    padded = checked_mul(padded, checked_add(checked_add(begin, end), checked_add(x[d + 2], axis.extent().value())));
  }
  checked_mul(padded, 16);
  return s;
}

// Adds to a row of outputs what one row of the input gives through one row of the kernel.
template <typename T>
void add_row(const kernels::ConvShape& s, const T* row, const T* taps, T* __restrict out) {
  const int64_t stride = s.stride[2];
  // The outputs for which tap k reads inside the row.
  auto shift = [&](int64_t k) { return k * s.dilation[2] - s.pad[2]; };
  auto first = [&](int64_t k) { return shift(k) >= 0 ? 0 : (-shift(k) + stride - 1) / stride; };
  auto last = [&](int64_t k) {
    return s.input[2] <= shift(k) ? 0 : std::min(s.output[2], (s.input[2] - 1 - shift(k)) / stride + 1);
  };
  auto add_tap = [&](int64_t k, int64_t from, int64_t to) {
    const T* at = row + shift(k);
    for (int64_t o = from; o < to; ++o) out[o] += taps[k] * at[o * stride];
  };
  int64_t k = 0;
  for (; stride == 1 && k + 2 < s.kernel[2]; k += 3) {
    // Where all three taps read inside, in one pass.
    const int64_t begin = first(k), end = std::max(begin, last(k + 2));
    const T *a = row + shift(k), *b = row + shift(k + 1), *c = row + shift(k + 2);
    const T fa = taps[k], fb = taps[k + 1], fc = taps[k + 2];
    for (int64_t o = begin; o < end; ++o) out[o] = out[o] + fa * a[o] + fb * b[o] + fc * c[o];
    for (int64_t tap = k; tap < k + 3; ++tap) {
      add_tap(tap, first(tap), std::min(last(tap), begin));
      add_tap(tap, std::max(first(tap), end), last(tap));
    }
  }
  for (; k < s.kernel[2]; ++k) add_tap(k, first(k), last(k));
}

// Convolution of types that models convolve rarely; T is also the type of the sums.
template <typename T>
void conv_any(ThreadPool& pool, const kernels::ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t channels = s.in_channels / s.groups, group_outputs = s.out_channels / s.groups;
  const int64_t rows = s.output[0] * s.output[1], width = s.output[2];
  if (width == 0 || s.out_channels == 0) return;
  const int64_t work = 1 + width * channels * s.kernel_size();
  pool.parallel_for(s.batch * s.out_channels * rows, 1 + (32 << 10) / work, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t plane = item / rows, oc = plane % s.out_channels, n = plane / s.out_channels;
      const int64_t od = item % rows / s.output[1], oh = item % s.output[1];
      T* __restrict out = y + item * width;
      std::fill(out, out + width, bias ? bias[oc] : T{});
      const T* taps = w + oc * channels * s.kernel_size();
      const T* image = x + (n * s.in_channels + oc / group_outputs * channels) * s.input_size();
      for (int64_t c = 0; c < channels; ++c, image += s.input_size()) {
        for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
          for (int64_t kh = 0; kh < s.kernel[1]; ++kh, taps += s.kernel[2]) {
            const int64_t d = od * s.stride[0] - s.pad[0] + kd * s.dilation[0];
            const int64_t h = oh * s.stride[1] - s.pad[1] + kh * s.dilation[1];
            if (d < 0 || d >= s.input[0] || h < 0 || h >= s.input[1]) continue;
            const T* row = image + (d * s.input[1] + h) * s.input[2];
            add_row(s, row, taps, out);
          }
        }
      }
    }
  });
}

}  // namespace tenon::ops
