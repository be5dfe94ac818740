#include <algorithm>
#include <vector>

#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"

namespace tenon::kernels {
namespace {

// How many positions each window counts along one dimension.
template <class T>
std::vector<T> window_counts(const PoolShape& s, int d, bool count_padding) {
  const int64_t low = count_padding ? -s.pad_begin[d] : 0;
  const int64_t high = s.input[d] + (count_padding ? s.pad_end[d] : 0);
  std::vector<T> counts(static_cast<size_t>(s.output[d]));
  for (int64_t o = 0; o < s.output[d]; ++o) {
    counts[static_cast<size_t>(o)] =
        static_cast<T>(taps_inside(o * s.stride[d] - s.pad_begin[d], s.kernel[d], s.dilation[d], low, high).size());
  }
  return counts;
}

// Windows of three neighbours, one after the other.
template <class T>
void average_threes(const T* __restrict sums, T rows, const T* __restrict columns, T* __restrict out, int64_t n) {
  for (int64_t o = 0; o < n; ++o) out[o] = (sums[o] + sums[o + 1] + sums[o + 2]) / (rows * columns[o]);
}

// Windows of two, side by side.
template <class T>
void average_pairs(const T* __restrict sums, T rows, const T* __restrict columns, T* __restrict out, int64_t n) {
  for (int64_t o = 0; o < n; ++o) out[o] = (sums[2 * o] + sums[2 * o + 1]) / (rows * columns[o]);
}

// The sums of the columns of the input rows that an output row covers.
template <class T>
void sum_columns(const PoolShape& s, const T* plane, int64_t depth, int64_t height, T* __restrict sums) {
  const int64_t n = s.input[2];
  const T* rows[3] = {};
  int64_t count = 0;
  each_covered_row(s, plane, depth, height, [&](const T* row, int64_t) {
    if (count < 3) rows[count] = row;
    ++count;
  });
  const T *a = rows[0], *b = rows[1], *c = rows[2];
  switch (count) {
    case 1:
      return static_cast<void>(std::copy_n(a, n, sums));
    case 2:
      for (int64_t i = 0; i < n; ++i) sums[i] = a[i] + b[i];
      return;
    case 3:
      for (int64_t i = 0; i < n; ++i) sums[i] = a[i] + b[i] + c[i];
      return;
    default:
      std::fill_n(sums, n, T{});
      each_covered_row(s, plane, depth, height, [&](const T* row, int64_t) {
        for (int64_t i = 0; i < n; ++i) sums[i] += row[i];
      });
  }
}

template <class T, int Channels>
struct InnerSums {
  void fold(const T* row) {
    for (int j = 0; j < Channels; ++j) sums[j] += row[j];
  }
  void finish(T* out) const {
    for (int j = 0; j < Channels; ++j) out[j] = sums[j] / count;
  }
  T count;
  T sums[Channels] = {};
};

}  // namespace

template <class T>
void average_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y, bool count_padding) {
  const std::vector<T> depths = window_counts<T>(s, 0, count_padding), heights = window_counts<T>(s, 1, count_padding),
                       widths = window_counts<T>(s, 2, count_padding);
  const auto count = [&](int64_t depth, int64_t height) {
    return depths[static_cast<size_t>(depth)] * heights[static_cast<size_t>(height)];
  };
  if (has_inner_channels(s, 8))
    return each_inner_window(pool, s, x, y, [&](int64_t d, int64_t h) { return InnerSums<T, 8>{count(d, h)}; });
  if (has_inner_channels(s, 16))
    return each_inner_window(pool, s, x, y, [&](int64_t d, int64_t h) { return InnerSums<T, 16>{count(d, h)}; });
  // Then sums have zeros for the padding.
  const bool has_threes = s.kernel[2] == 3 && s.stride[2] == 1 && s.dilation[2] == 1;
  const bool has_pairs = s.kernel[2] == 2 && s.stride[2] == 2 && s.dilation[2] == 1 && s.pad_begin[2] == 0 &&
                         2 * s.output[2] <= s.input[2];
  const int64_t before = has_threes ? s.pad_begin[2] : 0;
  // What is stored and read at once, at other places, is waited for: so some rows are summed up before any is averaged,
  // as many as the first cache holds.
  constexpr int64_t most_rows = 8, most_sums = 4096;
  const int64_t step = has_threes ? std::max(s.input[2] + before, s.output[2] + 2) : s.input[2];
  const int64_t rows_together = std::clamp(most_sums / std::max<int64_t>(step, 1), int64_t{1}, most_rows);
  each_group_of_rows(pool, s, rows_together, [&](const OutputRow& first, int64_t rows) {
    // First down the columns of the image, then along the sums: fewer additions, in longer loops.
    thread_local std::vector<T> memory;
    memory.resize(static_cast<size_t>(rows * step));
    OutputRow row = first;
    T* sums = memory.data();
    for (int64_t i = 0; i < rows; ++i, sums += step, row.go_on(s)) {
      T* inside = sums + before;
      std::fill(sums, inside, T{});
      std::fill(inside + s.input[2], sums + step, T{});
      sum_columns(s, x + row.plane * s.input_size(), row.depth, row.height, inside);
    }
    row = first;
    sums = memory.data();
    T* out = y + ((row.plane * s.output[0] + row.depth) * s.output[1] + row.height) * s.output[2];
    for (int64_t i = 0; i < rows; ++i, sums += step, out += s.output[2], row.go_on(s)) {
      const T in_column = count(row.depth, row.height), *in_row = widths.data();
      if (has_pairs) {
        average_pairs(sums, in_column, in_row, out, s.output[2]);
      } else if (has_threes) {
        average_threes(sums, in_column, in_row, out, s.output[2]);
      } else {
        std::fill(out, out + s.output[2], T{});
        fold_row(s, sums, out, [](T sum, T value) { return sum + value; });
        for (int64_t o = 0; o < s.output[2]; ++o) out[o] /= in_column * in_row[o];
      }
    }
  });
}

template void average_pool<float>(ThreadPool&, const PoolShape&, const float*, float*, bool);
template void average_pool<double>(ThreadPool&, const PoolShape&, const double*, double*, bool);

}  // namespace tenon::kernels
