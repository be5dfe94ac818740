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
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    // First down the columns of the image, then along the sums: fewer additions, in longer loops.
    thread_local std::vector<T> sums;
    sums.assign(static_cast<size_t>(s.input[2]), T{});
    each_covered_row(s, x + plane * s.input_size(), depth, height, [&](const T* row, int64_t) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
    });
    T* out = y + ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    std::fill(out, out + s.output[2], T{});
    fold_row(s, sums.data(), out, [](T sum, T value) { return sum + value; });
    for (int64_t o = 0; o < s.output[2]; ++o) out[o] /= count(depth, height) * widths[static_cast<size_t>(o)];
  });
}

template void average_pool<float>(ThreadPool&, const PoolShape&, const float*, float*, bool);
template void average_pool<double>(ThreadPool&, const PoolShape&, const double*, double*, bool);

}  // namespace tenon::kernels
