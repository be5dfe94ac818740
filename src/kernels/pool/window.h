// Which inputs a window covers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/pool/pool.h"

namespace tenon::kernels {

// A half-open range of indices.
struct IndexRange {
  int64_t begin, end;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

// a / b; divisions by one are many, and a division takes longer than a prediction.
inline int64_t divided(int64_t a, int64_t b) { return b == 1 ? a : a / b; }

// Kernel positions i for which low <= start + i * dilation < high.
inline IndexRange taps_inside(int64_t start, int64_t kernel, int64_t dilation, int64_t low, int64_t high) {
  const int64_t begin = start >= low ? 0 : divided(low - start + dilation - 1, dilation);
  const int64_t end = high <= start ? 0 : std::min(kernel, divided(high - 1 - start, dilation) + 1);
  return {begin, end};
}

// Output positions o in [0, outputs) for which 0 <= o * stride + shift < input.
inline IndexRange outputs_inside(int64_t outputs, int64_t stride, int64_t shift, int64_t input) {
  const int64_t begin = shift >= 0 ? 0 : divided(-shift + stride - 1, stride);
  const int64_t end = input <= shift ? 0 : std::min(outputs, divided(input - 1 - shift, stride) + 1);
  return {begin, end};
}

// Where an output row is. Making one takes divisions, going on does not.
struct OutputRow {
  int64_t plane, depth, height;

  OutputRow(const PoolShape& s, int64_t number)
      : plane(number / (s.output[0] * s.output[1])),
        depth(number / s.output[1] % s.output[0]),
        height(number % s.output[1]) {}
  // By so many rows, at most to the first one of the next slice.
  void go_on(const PoolShape& s, int64_t rows = 1) {
    height += rows;
    if (height < s.output[1]) return;
    height = 0;
    if (++depth == s.output[0]) depth = 0, ++plane;
  }
};

// Calls visit(first row, count) for all output rows, at most so many at a time, shared between the threads.
template <class Visit>
void each_group_of_rows(ThreadPool& pool, const PoolShape& s, int64_t most, Visit visit) {
  constexpr int64_t reads_per_task = 16 << 10;
  int64_t reads = s.output[2];
  for (int d = 0; d < 3; ++d) reads *= std::clamp<int64_t>(s.kernel[d], 1, std::max<int64_t>(1, s.input[d]));
  if (s.output[2] <= 0) return;
  pool.parallel_for(s.planes * s.output[0] * s.output[1], 1 + reads_per_task / reads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += most) visit(OutputRow(s, i), std::min(most, end - i));
  });
}

// Calls visit(plane, depth, height) for every one.
template <class Visit>
void each_output_row(ThreadPool& pool, const PoolShape& s, Visit visit) {
  constexpr int64_t rows_without_division = 64;
  each_group_of_rows(pool, s, rows_without_division, [&](OutputRow row, int64_t count) {
    for (; count > 0; --count, row.go_on(s)) visit(row.plane, row.depth, row.height);
  });
}

// Calls visit(input row, index of that row in its plane) for the input rows that an output row covers.
template <class T, class Visit>
void each_covered_row(const PoolShape& s, const T* plane, int64_t depth, int64_t height, Visit visit) {
  const int64_t d0 = depth * s.stride[0] - s.pad_begin[0], h0 = height * s.stride[1] - s.pad_begin[1];
  const IndexRange ds = taps_inside(d0, s.kernel[0], s.dilation[0], 0, s.input[0]);
  const IndexRange hs = taps_inside(h0, s.kernel[1], s.dilation[1], 0, s.input[1]);
  for (int64_t d = ds.begin; d < ds.end; ++d) {
    for (int64_t h = hs.begin; h < hs.end; ++h) {
      const int64_t row = (d0 + d * s.dilation[0]) * s.input[1] + h0 + h * s.dilation[1];
      visit(plane + row * s.input[2], row);
    }
  }
}

// Whether the last axis only has channels side by side, all of which a window covers alike.
inline bool has_inner_channels(const PoolShape& s, int64_t channels) {
  return s.input[2] == channels && s.output[2] == channels && s.kernel[2] == 1 && s.stride[2] == 1 &&
         s.pad_begin[2] == 0;
}

// For images with inner channels: make_window(depth, height) for every output, shared between the threads; it gets
// fold(channels) for each place that it covers, then finish(channels of the output).
template <class T, class Window>
void each_inner_window(ThreadPool& pool, const PoolShape& s, const T* x, T* y, Window make_window) {
  constexpr int64_t reads_per_task = 16 << 10;
  const int64_t reads = 1 + s.output[1] * s.output[2] * std::min(s.kernel[0] * s.kernel[1], s.input[0] * s.input[1]);
  const int64_t step = s.dilation[1] * s.input[2], reach = (s.kernel[1] - 1) * s.dilation[1];
  pool.parallel_for(s.planes * s.output[0], 1 + reads_per_task / reads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* plane = x + i / s.output[0] * s.input_size();
      T* out = y + i * s.output[1] * s.output[2];
      const int64_t depth = i % s.output[0], d0 = depth * s.stride[0] - s.pad_begin[0];
      const IndexRange ds = taps_inside(d0, s.kernel[0], s.dilation[0], 0, s.input[0]);
      for (int64_t height = 0; height < s.output[1]; ++height, out += s.output[2]) {
        const int64_t h0 = height * s.stride[1] - s.pad_begin[1];
        const bool inside = h0 >= 0 && h0 + reach < s.input[1];
        const IndexRange hs =
            inside ? IndexRange{0, s.kernel[1]} : taps_inside(h0, s.kernel[1], s.dilation[1], 0, s.input[1]);
        const int64_t count = hs.size(), first = h0 + hs.begin * s.dilation[1];
        auto window = make_window(depth, height);
        for (int64_t d = ds.begin; d < ds.end && count > 0; ++d) {
          const T* place = plane + ((d0 + d * s.dilation[0]) * s.input[1] + first) * s.input[2];
          if (count == 3) {
            window.fold(place), window.fold(place + step), window.fold(place + 2 * step);
          } else {
            for (int64_t h = 0; h < count; ++h) window.fold(place + h * step);
          }
        }
        window.finish(out);
      }
    }
  });
}

// Calls visit(shift, outputs) for each tap along the last axis: outputs o of that range read element o * stride +
// shift.
template <class Visit>
void each_tap(const PoolShape& s, Visit visit) {
  // Taps that no window has inside the row are left out: a kernel may be far larger than its image.
  const int64_t low = -(s.output[2] - 1) * s.stride[2];
  const IndexRange taps = taps_inside(-s.pad_begin[2], s.kernel[2], s.dilation[2], low, s.input[2]);
  for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
    const int64_t shift = tap * s.dilation[2] - s.pad_begin[2];
    visit(shift, outputs_inside(s.output[2], s.stride[2], shift, s.input[2]));
  }
}

// Folds the values of an input row into the output row `y`, tap by tap: y[o] = fold(y[o], row[o * stride + shift]).
template <class T, class Fold>
void fold_row(const PoolShape& s, const T* row, T* y, Fold fold) {
  each_tap(s, [&](int64_t shift, IndexRange outputs) {
    const auto [begin, end] = outputs;
    if (s.stride[2] == 1) {
      for (int64_t o = begin; o < end; ++o) y[o] = fold(y[o], row[o + shift]);
    } else if (s.stride[2] == 2) {
      for (int64_t o = begin; o < end; ++o) y[o] = fold(y[o], row[2 * o + shift]);
    } else {
      for (int64_t o = begin; o < end; ++o) y[o] = fold(y[o], row[o * s.stride[2] + shift]);
    }
  });
}

}  // namespace tenon::kernels
