#include <vector>

#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"

namespace tenon::kernels {
namespace {

// How many positions each window counts along one dimension.
std::vector<int64_t> window_counts(const PoolShape& s, int d, bool count_padding) {
  const int64_t low = count_padding ? -s.pad_begin[d] : 0;
  const int64_t high = s.input[d] + (count_padding ? s.pad_end[d] : 0);
  std::vector<int64_t> counts(static_cast<size_t>(s.output[d]));
  for (int64_t o = 0; o < s.output[d]; ++o) {
    counts[static_cast<size_t>(o)] =
        taps_inside(o * s.stride[d] - s.pad_begin[d], s.kernel[d], s.dilation[d], low, high).size();
  }
  return counts;
}

}  // namespace

template <class T>
void average_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y, bool count_padding) {
  const std::vector<int64_t> depths = window_counts(s, 0, count_padding), heights = window_counts(s, 1, count_padding),
                             widths = window_counts(s, 2, count_padding);
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    T* out = y + ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    std::fill(out, out + s.output[2], T{});
    each_covered_row(s, x + plane * s.input_size(), depth, height,
                     [&](const T* row, int64_t) { fold_row(s, row, out, [](T sum, T value) { return sum + value; }); });
    const int64_t lines = depths[static_cast<size_t>(depth)] * heights[static_cast<size_t>(height)];
    for (int64_t o = 0; o < s.output[2]; ++o) out[o] /= static_cast<T>(lines * widths[static_cast<size_t>(o)]);
  });
}

template void average_pool<float>(ThreadPool&, const PoolShape&, const float*, float*, bool);
template void average_pool<double>(ThreadPool&, const PoolShape&, const double*, double*, bool);

}  // namespace tenon::kernels
