#include <limits>

#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"

namespace tenon::kernels {
namespace {

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// Whether `value` takes the place of `best`; NaN does, and is never replaced.
template <class T>
constexpr bool wins(T value, T best) {
  return (value > best) | (value != value);
}

int64_t column_major(const PoolShape& s, int64_t index) {
  const int64_t w = index % s.input[2], h = index / s.input[2] % s.input[1], d = index / s.input[2] / s.input[1];
  return (w * s.input[1] + h) * s.input[0] + d;
}

// The index in the plane of one window's maximum, -1 if it covers nothing.
template <class T>
int64_t find_maximum(const PoolShape& s, const T* plane, int64_t depth, int64_t height, int64_t width) {
  const int64_t w0 = width * s.stride[2] - s.pad_begin[2];
  const IndexRange ws = taps_inside(w0, s.kernel[2], s.dilation[2], 0, s.input[2]);
  int64_t best = -1;
  each_covered_row(s, plane, depth, height, [&](const T* row, int64_t row_index) {
    for (int64_t tap = ws.begin; tap < ws.end; ++tap) {
      const int64_t w = w0 + tap * s.dilation[2];
      if (best < 0 || (wins(row[w], plane[best]) && plane[best] == plane[best])) best = row_index * s.input[2] + w;
    }
  });
  return best;
}

}  // namespace

template <class T>
void max_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y) {
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    T* out = y + ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    std::fill(out, out + s.output[2], lowest<T>());
    each_covered_row(s, x + plane * s.input_size(), depth, height, [&](const T* row, int64_t) {
      fold_row(s, row, out, [](T best, T value) { return wins(value, best) ? value : best; });
    });
  });
}

template <class T>
void max_pool_with_indices(ThreadPool& pool, const PoolShape& s, const T* x, T* y, int64_t* indices, IndexOrder order) {
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    const int64_t first = ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    const T* from = x + plane * s.input_size();
    for (int64_t width = 0; width < s.output[2]; ++width) {
      const int64_t best = find_maximum(s, from, depth, height, width);
      y[first + width] = best < 0 ? lowest<T>() : from[best];
      const int64_t numbered = order == IndexOrder::row_major ? best : column_major(s, best);
      indices[first + width] = best < 0 ? -1 : plane * s.input_size() + numbered;
    }
  });
}

#define TENON_INSTANTIATE(T)                                              \
  template void max_pool<T>(ThreadPool&, const PoolShape&, const T*, T*); \
  template void max_pool_with_indices<T>(ThreadPool&, const PoolShape&, const T*, T*, int64_t*, IndexOrder);
TENON_INSTANTIATE(float)
TENON_INSTANTIATE(double)
TENON_INSTANTIATE(int8_t)
TENON_INSTANTIATE(uint8_t)
#undef TENON_INSTANTIATE

}  // namespace tenon::kernels
