#include <limits>
#include <vector>

#include "kernels/pool/maxima.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"

namespace tenon::kernels {
namespace {

int64_t column_major(const PoolShape& s, int64_t index) {
  const int64_t w = index % s.input[2], h = index / s.input[2] % s.input[1], d = index / s.input[2] / s.input[1];
  return (w * s.input[1] + h) * s.input[0] + d;
}

// Compares best[o] with row[o * stride] for o < count; places[o] is where best[o] was, -1 before the first.
// A constant stride lets the compiler use vectors.
template <class T, class Index, class Stride>
void fold_places(const T* __restrict row, Stride stride, Index first, int64_t count, T* __restrict best,
                 Index* __restrict places) {
  for (int64_t o = 0; o < count; ++o) {
    const T value = row[o * stride], old = best[o];
    const bool take = (places[o] < 0) | (value > old) | ((value != value) & (old == old));
    best[o] = take ? value : old;
    places[o] = take ? static_cast<Index>(first + o * stride) : places[o];
  }
}

// Index numbers the elements of a plane; one as wide as T fills as many lanes.
template <class T, class Index>
void pool_with_indices(ThreadPool& pool, const PoolShape& s, const T* x, T* y, int64_t* indices, IndexOrder order) {
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    thread_local std::vector<Index> places;
    places.assign(static_cast<size_t>(s.output[2]), -1);
    const int64_t first = ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    T* best = y + first;
    std::fill_n(best, s.output[2], lowest<T>());
    each_covered_row(s, x + plane * s.input_size(), depth, height, [&](const T* row, int64_t row_index) {
      each_tap(s, [&](int64_t shift, IndexRange outputs) {
        const int64_t w = outputs.begin * s.stride[2] + shift, count = outputs.size();
        const auto fold = [&](auto stride) {
          fold_places<T, Index>(row + w, stride, static_cast<Index>(row_index * s.input[2] + w), count,
                                best + outputs.begin, places.data() + outputs.begin);
        };
        if (s.stride[2] == 1)
          fold(std::integral_constant<int64_t, 1>{});
        else if (s.stride[2] == 2)
          fold(std::integral_constant<int64_t, 2>{});
        else
          fold(s.stride[2]);
      });
    });
    for (int64_t o = 0; o < s.output[2]; ++o) {
      const int64_t place = places[static_cast<size_t>(o)];
      const int64_t numbered = order == IndexOrder::row_major ? place : column_major(s, place);
      indices[first + o] = place < 0 ? -1 : plane * s.input_size() + numbered;
    }
  });
}

}  // namespace

template <class T>
void max_pool_with_indices(ThreadPool& pool, const PoolShape& s, const T* x, T* y, int64_t* indices, IndexOrder order) {
  if (sizeof(T) <= sizeof(int32_t) && s.input_size() <= std::numeric_limits<int32_t>::max())
    pool_with_indices<T, int32_t>(pool, s, x, y, indices, order);
  else
    pool_with_indices<T, int64_t>(pool, s, x, y, indices, order);
}

#define TENON_INSTANTIATE(T) \
  template void max_pool_with_indices<T>(ThreadPool&, const PoolShape&, const T*, T*, int64_t*, IndexOrder);
TENON_INSTANTIATE(float)
TENON_INSTANTIATE(double)
TENON_INSTANTIATE(int8_t)
TENON_INSTANTIATE(uint8_t)
#undef TENON_INSTANTIATE

}  // namespace tenon::kernels
