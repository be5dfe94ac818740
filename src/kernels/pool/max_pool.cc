#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/pool/maxima.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"
#include "kernels/scratch.h"
#include "kernels/simd/extreme.h"

namespace tenon::kernels {
namespace {

template <class T>
typename VectorOf<T>::Type load(const T* p) {
  typename VectorOf<T>::Type v;
  std::memcpy(&v, p, sizeof v);
  return v;
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
    const bool pairs = has_pairs();
    // Some rows at once, because what was just stored cannot be read at another alignment without waiting.
    for (; begin < end; begin += batch_) {
      const int64_t count = std::min(batch_, end - begin);
      look_for_nan(x, begin, begin + count - 1);
      T* to = y + begin * s_.output[2];
      OutputRow row(s_, begin);
      for (int64_t i = 0, alike = 0; i < count; i += alike, row.go_on(s_, alike)) {
        alike = std::min(count - i, rows_alike(row));
        const Rows rows = covered_rows(x, row);
        if (pairs)
          fold_pairs(rows, alike, to + i * s_.output[2]);
        else
          fold_columns(rows, alike, memory_.as<T>() + i * length_);
      }
      if (!pairs) fold_padded_rows(memory_.as<T>(), count, to);
    }
  }

 private:
  static constexpr int width = vector_bytes / sizeof(T);
  static constexpr int64_t most_batch_elements = 16 << 10;
  using Vector = typename VectorOf<T>::Type;

  static int64_t extent(const PoolShape& s) {
    return (s.output[2] - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  }
  static void store(T* p, Vector v) { std::memcpy(p, &v, sizeof v); }
  template <bool HasNan>
  static Vector higher(Vector best, Vector value) {
    if constexpr (HasNan)
      return extreme_of<true, T>(best, value);
    else
      return extreme_of_numbers<true, T>(best, value);
  }

  // How many output rows from this one on, without leaving the slice, cover input rows in the same way, each of them
  // row_step() further on: all of their windows' rows.
  int64_t rows_alike(const OutputRow& row) const {
    const int64_t h0 = row.height * s_.stride[1] - s_.pad_begin[1];
    const int64_t room = s_.input[1] - 1 - (s_.kernel[1] - 1) * s_.dilation[1] - h0;
    if (h0 < 0 || room < 0) return 1;
    return std::min(s_.output[1] - row.height, divided(room, s_.stride[1]) + 1);
  }
  int64_t row_step() const { return s_.stride[1] * s_.input[2]; }

  // The input rows that an output row covers: in each of some slices, some that are `stride` elements apart.
  struct Rows {
    const T* first;
    int64_t slices, slice_stride, count, stride;

    bool empty() const { return slices == 0 || count == 0; }
    const T* last() const { return first + (slices - 1) * slice_stride + (count - 1) * stride; }
    template <class Visit>
    void each(Visit visit) const {
      for (int64_t d = 0; d < slices; ++d) {
        for (int64_t h = 0; h < count; ++h) visit(first + d * slice_stride + h * stride);
      }
    }
  };
  Rows covered_rows(const T* x, const OutputRow& row) const {
    const int64_t d0 = row.depth * s_.stride[0] - s_.pad_begin[0], h0 = row.height * s_.stride[1] - s_.pad_begin[1];
    const IndexRange ds = taps_inside(d0, s_.kernel[0], s_.dilation[0], 0, s_.input[0]);
    const IndexRange hs = taps_inside(h0, s_.kernel[1], s_.dilation[1], 0, s_.input[1]);
    const int64_t slice = s_.input[1] * s_.input[2];
    const int64_t depth = d0 + ds.begin * s_.dilation[0], height = h0 + hs.begin * s_.dilation[1];
    return {x + row.plane * s_.input_size() + depth * slice + height * s_.input[2], ds.size(), s_.dilation[0] * slice,
            hs.size(), s_.dilation[1] * s_.input[2]};
  }

  // Looks for NaN in what output rows [first, last] cover and rows before did not: in whole planes where these have a
  // depth, or windows have gaps, since later rows may then cover what lies before.
  void look_for_nan(const T* x, int64_t first, int64_t last) {
    if constexpr (numbers_are_cheaper<T>) {
      const int64_t rows = s_.output[0] * s_.output[1];
      const bool goes_on = s_.output[0] == 1 && s_.dilation[1] == 1;
      const auto has_bounds = [&](const Rows& covered) { return goes_on && !covered.empty(); };
      const Rows top = covered_rows(x, OutputRow(s_, first)), bottom = covered_rows(x, OutputRow(s_, last));
      const T* p = std::max(searched_end_, has_bounds(top) ? top.first : x + first / rows * s_.input_size());
      const T* end = has_bounds(bottom) ? bottom.last() + s_.input[2] : x + (last / rows + 1) * s_.input_size();
      searched_end_ = std::max(searched_end_, end);
      auto unequal = Vector{} != Vector{};
      for (; p + width <= end; p += width) unequal |= load(p) != load(p);
      for (int i = 0; i < width; ++i) has_nan_ |= unequal[i] != 0;
      for (; p < end; ++p) has_nan_ |= *p != *p;
    }
  }

  // The maxima of the columns of `rows`, and of `alike` sets of rows in all, into as many padded rows.
  void fold_columns(const Rows& rows, int64_t alike, T* padded) const {
    const int64_t first = std::max<int64_t>(0, -s_.pad_begin[2]);
    const int64_t last = std::min(s_.input[2], extent(s_) - s_.pad_begin[2]);
    T* to = padded + s_.pad_begin[2];
    if (rows.empty()) {
      for (int64_t i = first; i < last; ++i) to[i] = lowest<T>();
      return;
    }
    has_nan_ ? fold_rows<true>(rows, alike, first, last, to) : fold_rows<false>(rows, alike, first, last, to);
  }

  // Calls visit(i) for vectors that cover [first, last), which has at least one; the last may overlap the one before.
  template <class Visit>
  static void each_vector(int64_t first, int64_t last, Visit visit) {
    int64_t i = first;
    for (; i + width <= last; i += width) visit(i);
    if (i < last) visit(last - width);
  }

  // Calls visit(Columns<Count>) for so many rows; Count 0 is any number.
  template <bool HasNan, class Visit>
  static void with_columns(const Rows& rows, Visit visit) {
    switch (rows.slices == 1 ? rows.count : 0) {
      case 1:
        return visit(Columns<HasNan, 1>(rows));
      case 2:
        return visit(Columns<HasNan, 2>(rows));
      case 3:
        return visit(Columns<HasNan, 3>(rows));
      case 4:
        return visit(Columns<HasNan, 4>(rows));
      case 5:
        return visit(Columns<HasNan, 5>(rows));
      default:
        return visit(Columns<HasNan, 0>(rows));
    }
  }

  // The maxima of some columns of a number of rows that the compiler knows, or of any.
  template <bool HasNan, size_t Count>
  struct Columns {
    explicit Columns(const Rows& rows) {
      for (size_t k = 0; k < Count; ++k) row[k] = rows.first + static_cast<int64_t>(k) * rows.stride;
    }
    Vector at(int64_t i) const {
      Vector best = load(row[0] + i);
      for (size_t k = 1; k < Count; ++k) best = higher<HasNan>(best, load(row[k] + i));
      return best;
    }
    void advance(int64_t step) {
      for (const T*& each : row) each += step;
    }
    const T* row[Count];
  };
  template <bool HasNan>
  struct Columns<HasNan, 0> {
    explicit Columns(const Rows& all) : rows(all) {}
    Vector at(int64_t i) const {
      Vector best = load(rows.first + i);
      rows.each([&](const T* row) { best = higher<HasNan>(best, load(row + i)); });
      return best;
    }
    void advance(int64_t step) { rows.first += step; }
    Rows rows;
  };

  template <bool HasNan>
  void fold_rows(Rows rows, int64_t alike, int64_t first, int64_t last, T* to) const {
    const int64_t step = row_step(), length = length_;
    if (last - first >= width) {
      return with_columns<HasNan>(rows, [=](auto columns) mutable {
        for (int64_t n = alike; n > 0; --n, columns.advance(step), to += length)
          each_vector(first, last, [&](int64_t i) { store(to + i, columns.at(i)); });
      });
    }
    for (int64_t n = alike; n > 0; --n, rows.first += step, to += length) {
      for (int64_t i = first; i < last; ++i) {
        T best = rows.first[i];
        rows.each([&](const T* row) { best = wins(row[i], best) ? row[i] : best; });
        to[i] = best;
      }
    }
  }

  // Whether windows are pairs of columns side by side, none of which is padding.
  bool has_pairs() const {
    return s_.kernel[2] == 2 && s_.stride[2] == 2 && s_.dilation[2] == 1 && s_.pad_begin[2] == 0 &&
           s_.output[2] >= width && 2 * s_.output[2] <= s_.input[2];
  }

  void fold_pairs(const Rows& rows, int64_t alike, T* y) const {
    if (rows.empty()) return static_cast<void>(std::fill_n(y, s_.output[2], lowest<T>()));
    has_nan_ ? fold_pairs<true>(rows, alike, y) : fold_pairs<false>(rows, alike, y);
  }
  template <bool HasNan>
  void fold_pairs(const Rows& rows, int64_t alike, T* y) const {
    const int64_t step = row_step(), outputs = s_.output[2];
    with_columns<HasNan>(rows, [=](auto columns) mutable {
      for (int64_t n = alike; n > 0; --n, columns.advance(step), y += outputs)
        fold_row_of_pairs<HasNan>(columns, y, outputs, std::make_integer_sequence<int, width>{});
    });
  }
  template <bool HasNan, class Columns, int... I>
  static void fold_row_of_pairs(const Columns& columns, T* y, int64_t outputs, std::integer_sequence<int, I...>) {
    each_vector(0, outputs, [&](int64_t o) {
      const Vector low = columns.at(2 * o), high = columns.at(2 * o + width);
      store(y + o, higher<HasNan>(__builtin_shufflevector(low, high, (2 * I)...),
                                  __builtin_shufflevector(low, high, (2 * I + 1)...)));
    });
  }

  void fold_padded_rows(const T* rows, int64_t count, T* y) const {
    if (s_.stride[2] == 1)
      has_nan_ ? fold_windows<1, true>(rows, count, y) : fold_windows<1, false>(rows, count, y);
    else if (s_.stride[2] == 2)
      has_nan_ ? fold_windows<2, true>(rows, count, y) : fold_windows<2, false>(rows, count, y);
    else
      for (int64_t i = 0; i < count; ++i) fold_spread_windows(rows + i * length_, y + i * s_.output[2]);
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
  void fold_windows(const T* rows, int64_t count, T* y) const {
    const auto fold = [&](auto taps) {
      const int64_t length = length_, outputs = s_.output[2], dilation = s_.dilation[2];
      for (int64_t i = 0; i < count; ++i)
        fold_row_of_windows<Stride, HasNan>(rows + i * length, y + i * outputs, taps, outputs, dilation);
    };
    switch (s_.kernel[2]) {
      case 2:
        return fold(std::integral_constant<int64_t, 2>{});
      case 3:
        return fold(std::integral_constant<int64_t, 3>{});
      case 5:
        return fold(std::integral_constant<int64_t, 5>{});
      default:
        return fold(s_.kernel[2]);
    }
  }

  template <int Stride, bool HasNan, class Taps>
  static void fold_row_of_windows(const T* row, T* y, Taps taps, int64_t outputs, int64_t dilation) {
    constexpr auto lanes = std::make_integer_sequence<int, width>{};
    const auto window = [&](int64_t o) {
      const T* from = row + o * Stride;
      Vector best = load_spread<Stride>(from, lanes);
      for (int64_t tap = 1; tap < taps; ++tap)
        best = higher<HasNan>(best, load_spread<Stride>(from + tap * dilation, lanes));
      return best;
    };
    if (outputs < width) {
      const Vector best = window(0);
      std::memcpy(y, &best, static_cast<size_t>(outputs) * sizeof(T));
      return;
    }
    int64_t o = 0;
    if constexpr (Stride == 1 && width == 4 && std::is_same_v<Taps, std::integral_constant<int64_t, 5>>) {
      if (dilation == 1) o = fold_fives<HasNan>(row, y, outputs);
    }
    for (; o + width <= outputs; o += width) store(y + o, window(o));
    if (o < outputs) store(y + outputs - width, window(outputs - width));
  }

  // Maxima of five elements side by side, for whole vectors; returns how many they are. They are maxima of pairs, which
  // are each computed once, and of a single one. A load at each place would take longer, where vectors are not longer.
  template <bool HasNan>
  static int64_t fold_fives(const T* row, T* y, int64_t outputs) {
    constexpr auto lanes = std::make_integer_sequence<int, width>{};
    const auto pairs_of = [&](Vector own, Vector next) { return higher<HasNan>(own, shifted<1>(own, next, lanes)); };
    int64_t o = 0;
    Vector own = load(row), next = load(row + width), pairs = pairs_of(own, next);
    for (; o + width <= outputs; o += width) {
      const Vector after = load(row + o + 2 * width), next_pairs = pairs_of(next, after);
      const Vector four = higher<HasNan>(pairs, shifted<2>(pairs, next_pairs, lanes));
      store(y + o, higher<HasNan>(four, shifted<4>(own, next, lanes)));
      own = next;
      next = after;
      pairs = next_pairs;
    }
    return o;
  }

  // The elements of two vectors in a row from place `first` on.
  template <int first, int... I>
  static Vector shifted(Vector low, Vector high, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(low, high, (first + I)...);
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

// Maxima of images with so many inner channels: of an output row, first of the rows that it covers, column by column,
// then along the resulting row.
template <int Channels>
class InnerRowMaxima {
 public:
  explicit InnerRowMaxima(const PoolShape& s)
      : s_(s), memory_(static_cast<size_t>(s.input[1] * s.input[2]) * sizeof(float)) {}

  // Row `depth` of the output of a plane.
  void run(const float* plane, int64_t depth, float* y) {
    const int64_t d0 = depth * s_.stride[0] - s_.pad_begin[0], row = s_.input[1] * Channels;
    const IndexRange ds = taps_inside(d0, s_.kernel[0], s_.dilation[0], 0, s_.input[0]);
    if (ds.size() == 0) return static_cast<void>(std::fill_n(y, s_.output[1] * Channels, lowest<float>()));
    const float* first = plane + (d0 + ds.begin * s_.dilation[0]) * row;
    fold_windows(highest_rows(first, ds.size(), s_.dilation[0] * row), y);
  }

 private:
  static constexpr int width = vector_bytes / sizeof(float);
  using Vector = VectorOf<float>::Type;

  static Vector higher(Vector best, const float* p) { return extreme_of<true, float>(best, load(p)); }

  const float* highest_rows(const float* first, int64_t count, int64_t step) {
    if (count == 1) return first;
    if (count == 2) return highest_of(first, std::integral_constant<int64_t, 2>{}, step);
    if (count == 3) return highest_of(first, std::integral_constant<int64_t, 3>{}, step);
    return highest_of(first, count, step);
  }
  template <class Count>
  const float* highest_of(const float* first, Count count, int64_t step) {
    float* to = memory_.as<float>();
    for (int64_t i = 0; i < s_.input[1] * Channels; i += width) {
      Vector best = load(first + i);
      for (int64_t row = 1; row < count; ++row) best = higher(best, first + row * step + i);
      std::memcpy(to + i, &best, sizeof best);
    }
    return to;
  }

  void fold_windows(const float* row, float* y) const {
    const int64_t stride = s_.stride[1], reach = (s_.kernel[1] - 1) * s_.dilation[1];
    const IndexRange inside = outputs_inside(s_.output[1], stride, -s_.pad_begin[1], s_.input[1] - reach);
    const int64_t begin = std::min(inside.begin, s_.output[1]), end = std::max(begin, inside.end);
    for (int64_t o = 0; o < begin; ++o) fold_edge(row, o, y);
    fold_inside(row, begin, end, y);
    for (int64_t o = end; o < s_.output[1]; ++o) fold_edge(row, o, y);
  }
  void fold_edge(const float* row, int64_t o, float* y) const {
    const int64_t first = o * s_.stride[1] - s_.pad_begin[1];
    const IndexRange taps = taps_inside(first, s_.kernel[1], s_.dilation[1], 0, s_.input[1]);
    if (taps.size() == 0) return static_cast<void>(std::fill_n(y + o * Channels, Channels, lowest<float>()));
    fold(row + (first + taps.begin * s_.dilation[1]) * Channels, taps.size(), y + o * Channels);
  }
  void fold_inside(const float* row, int64_t begin, int64_t end, float* y) const {
    const auto fold_all = [&](auto taps) {
      for (int64_t o = begin; o < end; ++o)
        fold(row + (o * s_.stride[1] - s_.pad_begin[1]) * Channels, taps, y + o * Channels);
    };
    if (s_.kernel[1] == 2) return fold_all(std::integral_constant<int64_t, 2>{});
    if (s_.kernel[1] == 3) return fold_all(std::integral_constant<int64_t, 3>{});
    fold_all(s_.kernel[1]);
  }
  // Of some pixels.
  template <class Taps>
  [[gnu::always_inline]] void fold(const float* pixel, Taps taps, float* y) const {
    const int64_t step = s_.dilation[1] * Channels;
    for (int64_t c = 0; c < Channels; c += width) {
      Vector best = load(pixel + c);
      for (int64_t tap = 1; tap < taps; ++tap) best = higher(best, pixel + tap * step + c);
      std::memcpy(y + c, &best, sizeof best);
    }
  }

  const PoolShape& s_;
  Scratch memory_;  // a row
};

template <int Channels>
void max_pool_inner(ThreadPool& pool, const PoolShape& s, const float* x, float* y) {
  constexpr int64_t reads_per_task = 16 << 10;
  const int64_t reads = 1 + s.output[1] * s.output[2] * std::min(s.kernel[0] * s.kernel[1], s.input[0] * s.input[1]);
  pool.parallel_for(s.planes * s.output[0], 1 + reads_per_task / reads, [&](int64_t begin, int64_t end) {
    InnerRowMaxima<Channels> maxima(s);
    for (int64_t i = begin; i < end; ++i)
      maxima.run(x + i / s.output[0] * s.input_size(), i % s.output[0], y + i * s.output[1] * s.output[2]);
  });
}

}  // namespace

template <class T>
void max_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    if (has_inner_channels(s, 8)) return max_pool_inner<8>(pool, s, x, y);
    if (has_inner_channels(s, 16)) return max_pool_inner<16>(pool, s, x, y);
  }
  if (!RowMaxima<T>::suits(s)) return max_pool_sparse(pool, s, x, y);
  constexpr int64_t reads_per_task = 16 << 10;
  const int64_t rows = s.output[0] * s.output[1];
  const int64_t reads = s.input[2] * std::min(s.kernel[0] * s.kernel[1], s.input[0] * s.input[1]) + s.output[2];
  pool.parallel_for(s.planes * rows, 1 + reads_per_task / (reads + 1),
                    [&](int64_t begin, int64_t end) { RowMaxima<T>(s).run(x, begin, end, y); });
}

template void max_pool<float>(ThreadPool&, const PoolShape&, const float*, float*);
template void max_pool<double>(ThreadPool&, const PoolShape&, const double*, double*);
template void max_pool<int8_t>(ThreadPool&, const PoolShape&, const int8_t*, int8_t*);
template void max_pool<uint8_t>(ThreadPool&, const PoolShape&, const uint8_t*, uint8_t*);

}  // namespace tenon::kernels
