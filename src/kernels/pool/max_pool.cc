#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"
#include "kernels/scratch.h"
#include "kernels/simd/extreme.h"

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

// Maxima of whole output rows: first of the covered input rows, column by column, then along the resulting row, which
// is padded so that no window leaves it.
template <class T>
class RowMaxima {
 public:
  // Whether the padded row is of a size that the image justifies.
  static bool suits(const PoolShape& s) {
    return s.output[2] <= 2 * s.input[2] && s.stride[2] <= s.input[2] && extent(s) <= 2 * s.input[2] + 64;
  }

  explicit RowMaxima(const PoolShape& s)
      : s_(s),
        length_(extent(s) + (2 * width + 1) * s.stride[2]),
        batch_(std::clamp<int64_t>(most_batch_elements / length_, 1, 64)),
        memory_(static_cast<size_t>(batch_ * length_) * sizeof(T)) {
    std::fill_n(memory_.as<T>(), batch_ * length_, lowest<T>());
  }

  // Output rows [begin, end), counted through all planes.
  void run(const T* x, int64_t begin, int64_t end, T* y) {
    // Some rows at once, because what was just stored cannot be read at another alignment without waiting.
    for (; begin < end; begin += batch_) {
      const int64_t count = std::min(batch_, end - begin);
      look_for_nan(x, begin, begin + count - 1);
      for (int64_t i = 0; i < count; ++i) fold_columns(x, begin + i, memory_.as<T>() + i * length_);
      for (int64_t i = 0; i < count; ++i) {
        const T* row = memory_.as<T>() + i * length_;
        T* to = y + (begin + i) * s_.output[2];
        if (s_.stride[2] == 1)
          has_nan_ ? fold_windows<1, true>(row, to) : fold_windows<1, false>(row, to);
        else if (s_.stride[2] == 2)
          has_nan_ ? fold_windows<2, true>(row, to) : fold_windows<2, false>(row, to);
        else
          fold_spread_windows(row, to);
      }
    }
  }

 private:
  static constexpr int width = vector_bytes / sizeof(T);
  static constexpr int64_t most_batch_elements = 16 << 10;
  using Vector = typename VectorOf<T>::Type;

  static int64_t extent(const PoolShape& s) {
    return (s.output[2] - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  }
  static Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  template <bool HasNan>
  static Vector higher(Vector best, Vector value) {
    if constexpr (HasNan)
      return extreme_of<true, T>(best, value);
    else
      return extreme_of_numbers<true, T>(best, value);
  }

  // The input rows that output row `index` covers.
  std::span<const T* const> covered_rows(const T* x, int64_t index) {
    const int64_t rows = s_.output[0] * s_.output[1], plane = index / rows, depth = index % rows / s_.output[1];
    rows_.clear();
    each_covered_row(s_, x + plane * s_.input_size(), depth, index % rows % s_.output[1],
                     [&](const T* row, int64_t) { rows_.push_back(row); });
    return rows_;
  }

  // Looks for NaN in what output rows [first, last] cover and rows before did not.
  void look_for_nan(const T* x, int64_t first, int64_t last) {
    if constexpr (numbers_are_cheaper<T>) {
      const int64_t rows = s_.output[0] * s_.output[1];
      auto covered = covered_rows(x, first);
      const T* p = std::max(searched_end_, covered.empty() ? x + first / rows * s_.input_size() : covered.front());
      covered = covered_rows(x, last);
      const T* end = covered.empty() ? x + (last / rows + 1) * s_.input_size() : covered.back() + s_.input[2];
      searched_end_ = std::max(searched_end_, end);
      auto unequal = Vector{} != Vector{};
      for (; p + width <= end; p += width) unequal |= load(p) != load(p);
      for (int i = 0; i < width; ++i) has_nan_ |= unequal[i] != 0;
      for (; p < end; ++p) has_nan_ |= *p != *p;
    }
  }

  // The maxima of the columns that output row `index` covers, into a padded row.
  void fold_columns(const T* x, int64_t index, T* padded) {
    const std::span<const T* const> rows = covered_rows(x, index);
    const int64_t first = std::max<int64_t>(0, -s_.pad_begin[2]);
    const int64_t last = std::min(s_.input[2], extent(s_) - s_.pad_begin[2]);
    T* to = padded + s_.pad_begin[2];
    if (rows.empty()) {
      for (int64_t i = first; i < last; ++i) to[i] = lowest<T>();
      return;
    }
    has_nan_ ? fold_rows<true>(rows, first, last, to) : fold_rows<false>(rows, first, last, to);
  }

  template <bool HasNan>
  static void fold_rows(std::span<const T* const> rows, int64_t first, int64_t last, T* to) {
    const std::span<const T* const> rest = rows.subspan(1);
    if (last - first >= width) {
      for (int64_t next = first; next < last; next += width) {
        const int64_t i = std::min(next, last - width);  // the last vector may repeat results of the one before
        Vector best = load(rows[0] + i);
        for (const T* row : rest) best = higher<HasNan>(best, load(row + i));
        std::memcpy(to + i, &best, sizeof best);
      }
      return;
    }
    for (int64_t i = first; i < last; ++i) {
      T best = rows[0][i];
      for (const T* row : rest) best = wins(row[i], best) ? row[i] : best;
      to[i] = best;
    }
  }

  // Vector element i is p[i * Stride].
  template <int Stride, int... I>
  static Vector load_spread(const T* p, std::integer_sequence<int, I...>) {
    if constexpr (Stride == 1) {
      return load(p);
    } else {
      return __builtin_shufflevector(load(p), load(p + width), (2 * I)...);
    }
  }

  template <int Stride, bool HasNan>
  void fold_windows(const T* row, T* y) const {
    switch (s_.kernel[2]) {
      case 2:
        return fold_windows<Stride, HasNan>(row, y, std::integral_constant<int64_t, 2>{});
      case 3:
        return fold_windows<Stride, HasNan>(row, y, std::integral_constant<int64_t, 3>{});
      case 5:
        return fold_windows<Stride, HasNan>(row, y, std::integral_constant<int64_t, 5>{});
      default:
        return fold_windows<Stride, HasNan>(row, y, s_.kernel[2]);
    }
  }

  template <int Stride, bool HasNan, class Taps>
  void fold_windows(const T* row, T* y, Taps taps) const {
    constexpr auto lanes = std::make_integer_sequence<int, width>{};
    const int64_t outputs = s_.output[2], dilation = s_.dilation[2];
    for (int64_t next = 0; next < outputs; next += width) {
      const int64_t o = std::max<int64_t>(0, std::min(next, outputs - width));
      const T* from = row + o * Stride;
      Vector best = load_spread<Stride>(from, lanes);
      for (int64_t tap = 1; tap < taps; ++tap) {
        best = higher<HasNan>(best, load_spread<Stride>(from + tap * dilation, lanes));
      }
      if (outputs >= width)
        std::memcpy(y + o, &best, sizeof best);
      else
        std::memcpy(y, &best, static_cast<size_t>(outputs) * sizeof(T));
    }
  }

  void fold_spread_windows(const T* row, T* y) const {
    for (int64_t o = 0; o < s_.output[2]; ++o) {
      const T* from = row + o * s_.stride[2];
      T best = *from;
      for (int64_t tap = 1; tap < s_.kernel[2]; ++tap) {
        const T value = from[tap * s_.dilation[2]];
        best = wins(value, best) ? value : best;
      }
      y[o] = best;
    }
  }

  const PoolShape& s_;
  int64_t length_, batch_;
  Scratch memory_;  // padded rows
  std::vector<const T*> rows_;
  const T* searched_end_ = nullptr;
  bool has_nan_ = false;
};

// Windows that reach far beyond the image: tap by tap, without what lies outside.
template <class T>
void max_pool_sparse(ThreadPool& pool, const PoolShape& s, const T* x, T* y) {
  each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    T* out = y + ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    std::fill(out, out + s.output[2], lowest<T>());
    each_covered_row(s, x + plane * s.input_size(), depth, height, [&](const T* row, int64_t) {
      fold_row(s, row, out, [](T best, T value) { return wins(value, best) ? value : best; });
    });
  });
}

template <int Channels>
struct InnerMaxima {
  static constexpr int width = vector_bytes / sizeof(float), count = Channels / width;
  using Vector = VectorOf<float>::Type;

  void fold(const float* row) {
    for (int j = 0; j < count; ++j) {
      Vector value;
      std::memcpy(&value, row + j * width, sizeof value);
      best[j] = extreme_of<true, float>(best[j], value);
    }
  }
  void finish(float* out) const { std::memcpy(out, best, sizeof best); }

  InnerMaxima() {
    for (Vector& vector : best) vector = Vector{} + lowest<float>();
  }
  Vector best[count];
};

}  // namespace

template <class T>
void max_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    if (has_inner_channels(s, 8))
      return each_inner_window(pool, s, x, y, [](int64_t, int64_t) { return InnerMaxima<8>(); });
    if (has_inner_channels(s, 16))
      return each_inner_window(pool, s, x, y, [](int64_t, int64_t) { return InnerMaxima<16>(); });
  }
  if (!RowMaxima<T>::suits(s)) return max_pool_sparse(pool, s, x, y);
  constexpr int64_t reads_per_task = 16 << 10;
  const int64_t rows = s.output[0] * s.output[1];
  const int64_t reads = s.input[2] * std::min(s.kernel[0] * s.kernel[1], s.input[0] * s.input[1]) + s.output[2];
  pool.parallel_for(s.planes * rows, 1 + reads_per_task / (reads + 1),
                    [&](int64_t begin, int64_t end) { RowMaxima<T>(s).run(x, begin, end, y); });
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
