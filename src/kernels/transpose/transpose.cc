#include "kernels/transpose/transpose.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/whole_lines.h"
#include "kernels/transpose/plan.h"

namespace tenon::kernels {
namespace {

using Axis = TransposePlan::Axis;

constexpr int64_t bytes_per_task = 64 << 10;
// Rows and columns of a tile, of elements of so many bytes: rows of bytes fill a cache line.
constexpr int64_t tile_of(int64_t bytes) { return bytes == 1 ? 64 : 32; }

// Where a loop over the outer axes is, in bytes of input and output.
struct Position {
  int64_t from = 0, to = 0;
};

Position position_of(std::span<const Axis> axes, int64_t index, int64_t bytes) {
  Position p;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t at = index % axes[i].size;
    index /= axes[i].size;
    p.from += at * axes[i].from_stride * bytes;
    p.to += at * axes[i].to_stride * bytes;
  }
  return p;
}

// Calls visit(position, place on the last axis) for [begin, end) of a loop over the axes, most of it without divisions.
template <class Visit>
void visit_positions(std::span<const Axis> axes, int64_t begin, int64_t end, int64_t bytes, const Visit& visit) {
  const Axis& inner = axes.back();
  const int64_t from_step = inner.from_stride * bytes, to_step = inner.to_stride * bytes;
  while (begin < end) {
    const int64_t first = begin % inner.size, last = std::min(inner.size, first + end - begin);
    Position at = position_of(axes, begin, bytes);
    for (int64_t i = first; i < last; ++i, at.from += from_step, at.to += to_step) visit(at, i);
    begin += last - first;
  }
}

int64_t count_of(std::span<const Axis> axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// Elements may be merged ones, so nothing is said about their alignment.
template <class T>
void copy_one(T* to, const T* from) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(T));
}

// As many rows and columns as 16 bytes have elements; or some such squares side by side, each in 16 bytes of a vector.
template <class T, size_t count = 1>
struct Square {
  static constexpr size_t size = 16 / sizeof(T);
  using V [[gnu::vector_size(16 * count)]] = T;
  struct Columns {
    V at[size];
  };

  // The elements of the first or second half of a vector's squares, in turn with those of another one's.
  template <size_t half, size_t... I>
  static V zip(V a, V b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I / size * size + half * size / 2 + I % size / 2 + I % 2 * size * count)...);
  }
  template <size_t half>
  static V zip(V a, V b) {
    return zip<half>(a, b, std::make_index_sequence<size * count>());
  }

  // Column c of each square, from rows that start from_stride apart. Each step puts elements side by side that were
  // half as many vectors apart.
  [[gnu::always_inline]] static Columns columns(const T* from, int64_t from_stride) {
    Columns v, next;
#pragma GCC unroll 16
    for (size_t i = 0; i < size; ++i) std::memcpy(&v.at[i], from + static_cast<int64_t>(i) * from_stride, sizeof(V));
#pragma GCC unroll 4
    for (size_t step = 1; step < size; step *= 2) {
#pragma GCC unroll 8
      for (size_t i = 0; i < size / 2; ++i) {
        next.at[2 * i] = zip<0>(v.at[i], v.at[i + size / 2]);
        next.at[2 * i + 1] = zip<1>(v.at[i], v.at[i + size / 2]);
      }
      v = next;
    }
    return v;
  }

  // to[c * to_stride + r] = from[r * from_stride + c].
  static void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
    const Columns all = columns(from, from_stride);
#pragma GCC unroll 16
    for (size_t i = 0; i < size; ++i) {
#pragma GCC unroll 2
      for (size_t square = 0; square < count; ++square)
        std::memcpy(to + static_cast<int64_t>(square * size + i) * to_stride,
                    reinterpret_cast<const char*>(&all.at[i]) + 16 * square, 16);
    }
  }
};

// Squares that a register holds.
#ifdef __AVX2__
constexpr size_t squares_together = 2;
#else
constexpr size_t squares_together = 1;
#endif

// The same for any number of them.
template <class T>
void transpose_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns) {
  int64_t r = 0;
  if constexpr (sizeof(T) <= 4) {
    constexpr auto size = static_cast<int64_t>(Square<T>::size), together = static_cast<int64_t>(squares_together);
    for (; r + size <= rows; r += size) {
      int64_t c = 0;
      for (; c + together * size <= columns; c += together * size)
        Square<T, squares_together>::transpose(from + r * from_stride + c, from_stride, to + c * to_stride + r,
                                               to_stride);
      for (; c + size <= columns; c += size)
        Square<T>::transpose(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      for (; c < columns; ++c) {
        for (int64_t i = r; i < r + size; ++i) copy_one(to + c * to_stride + i, from + i * from_stride + c);
      }
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = r; i < rows; ++i) copy_one(to + c * to_stride + i, from + i * from_stride + c);
  }
}

// Rows of the input that make a cache line of the output.
constexpr int64_t line = 16;

// The same for `line` rows and 4 columns. A cache line is written in one go: then it need not be read before.
[[gnu::always_inline]] inline void transpose_lines_4(const uint32_t* from, int64_t from_stride, uint32_t* to,
                                                     int64_t to_stride) {
  using Square = Square<uint32_t>;
  const Square::Columns parts[] = {
      Square::columns(from, from_stride), Square::columns(from + 4 * from_stride, from_stride),
      Square::columns(from + 8 * from_stride, from_stride), Square::columns(from + 12 * from_stride, from_stride)};
#pragma GCC unroll 4
  for (size_t c = 0; c < 4; ++c)
    store_line(to + static_cast<int64_t>(c) * to_stride, parts[0].at[c], parts[1].at[c], parts[2].at[c],
               parts[3].at[c]);
}

// The same for columns by fours; fetches the same of `ahead` into the first cache, if asked. Inline and simple, since
// the core reads lines first if something else, such as registers at a call or too many of them, is stored in between.
template <bool Fetches>
[[gnu::always_inline]] inline void transpose_lines(const uint32_t* from, int64_t from_stride, const uint32_t* ahead,
                                                   uint32_t* to, int64_t to_stride, int64_t columns) {
  for (int64_t c = 0; c < columns; c += 4) {
    transpose_lines_4(from + c, from_stride, to + c * to_stride, to_stride);
    if constexpr (Fetches) {
      for (int64_t r = c % line; r < c % line + 4; ++r) __builtin_prefetch(ahead + r * from_stride + c / line * line);
    }
  }
}

// Neighbouring columns that are worked on together: long pieces of rows are read faster.
constexpr int64_t columns_together = 256;

// The same for as many of the rows as make whole lines.
template <bool Fetches>
void transpose_rows(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  for (int64_t r = 0; r + line <= rows; r += line, from += line * from_stride)
    transpose_lines<Fetches>(from, from_stride, from + line * from_stride, to + r, to_stride, columns);
}

// Rows at such distances that the first cache has room for few of them: they are copied next to each other, while those
// that come next are fetched, row by row. `columns` is a number, or one that the compiler knows: then registers
// suffice, and nothing but lines is stored.
template <class Columns>
void transpose_crowded_rows(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride, int64_t rows,
                            Columns columns) {
  constexpr int64_t stride = columns_together + line;
  alignas(64) uint32_t memory[line * stride];
  for (int64_t r = 0; r + line <= rows; r += line, from += line * from_stride) {
    for (int64_t i = 0; i < line; ++i)
      copy_in_order(memory + i * stride, from + i * from_stride, static_cast<size_t>(columns) * sizeof(uint32_t),
                    from + (i + line) * from_stride);
    transpose_lines<false>(memory, stride, nullptr, to + r, to_stride, columns);
  }
}
void transpose_crowded(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride, int64_t rows,
                       int64_t columns) {
  constexpr std::integral_constant<int64_t, columns_together> usual;
  if (columns == usual) return transpose_crowded_rows(from, from_stride, to, to_stride, rows, usual);
  transpose_crowded_rows(from, from_stride, to, to_stride, rows, columns);
}

bool is_crowded(int64_t from_stride) {
  constexpr int64_t page = 1024;
  return from_stride % page == 0;
}

// The core foresees by itself where long rows go on.
auto lines_loop(int64_t from_stride) {
  constexpr int64_t short_row = 128;
  return is_crowded(from_stride)    ? transpose_crowded
         : from_stride <= short_row ? transpose_rows<true>
                                    : transpose_rows<false>;
}

// to[c][i] = from[i][c] or to[i][c] = from[c][i], where there are few c: the rows with few elements are dense.
template <int few, class T>
void take_apart(const T* __restrict from, T* __restrict to, int64_t to_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < few; ++c) to[c * to_stride + i] = from[i * few + c];
  }
}
template <int few, class T>
void put_together(const T* __restrict from, int64_t from_stride, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < few; ++c) to[i * few + c] = from[c * from_stride + i];
  }
}

// Images of few channels: false if these are none.
template <class T>
bool transpose_few(ThreadPool& pool, const char* from, char* to, std::span<const Axis> outer, const Axis& rows,
                   const Axis& columns) {
  const bool apart = columns.size <= 4 && rows.from_stride == columns.size,
             together = rows.size <= 4 && columns.to_stride == rows.size;
  if (!apart && !together) return false;
  const int64_t length = apart ? rows.size : columns.size, few = apart ? columns.size : rows.size;
  const int64_t stride = apart ? columns.to_stride : rows.from_stride;
  const auto loop = few == 2 ? take_apart<2, T> : few == 3 ? take_apart<3, T> : take_apart<4, T>;
  const auto other = few == 2 ? put_together<2, T> : few == 3 ? put_together<3, T> : put_together<4, T>;
  // Long ones in parts, which are one more axis.
  constexpr int64_t part = 4096;
  std::vector<Axis> axes(outer.begin(), outer.end());
  const bool in_parts = axes.empty() || length > part;
  if (in_parts) axes.push_back({(length + part - 1) / part, apart ? part * few : part, apart ? part : part * few});
  pool.parallel_for(count_of(axes), 4, [&](int64_t begin, int64_t end) {
    visit_positions(axes, begin, end, sizeof(T), [&](Position at, int64_t place) {
      const int64_t n = in_parts ? std::min(part, length - place * part) : length;
      const T* source = reinterpret_cast<const T*>(from + at.from);
      T* target = reinterpret_cast<T*>(to + at.to);
      if (apart)
        loop(source, target, stride, n);
      else
        other(source, stride, target, n);
    });
  });
  return true;
}

// Neighbouring rows that are worked on together.
constexpr int64_t rows_together = 128;

// The output's innermost axis is `rows` (an outer axis of the input), the input's innermost is `columns`.
template <class T>
void transpose_planes(ThreadPool& pool, const char* from, char* to, std::span<const Axis> outer, const Axis& rows,
                      const Axis& columns) {
  constexpr int64_t bytes = sizeof(T);
  if constexpr (bytes <= 4) {
    if (transpose_few<T>(pool, from, to, outer, rows, columns)) return;
  }
  // Crowded rows are fetched ahead downwards, others go on to the right.
  const bool goes_down = bytes == 4 && is_crowded(rows.from_stride);
  // Pieces of crowded rows are blocks of memory, as the core fetches whole ones: the first may begin before the row.
  const int64_t before =
      goes_down ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(from)) / bytes % columns_together : 0;
  const int64_t down = (rows.size + rows_together - 1) / rows_together,
                across = (before + columns.size + columns_together - 1) / columns_together;
  const int64_t bytes_each = std::min(rows_together, rows.size) * std::min(columns_together, columns.size) * bytes;
  pool.parallel_for(count_of(outer) * down * across, 1 + bytes_per_task / bytes_each, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Position at = position_of(outer, task / across / down, bytes);
      const T* source = reinterpret_cast<const T*>(from + at.from);
      T* target = reinterpret_cast<T*>(to + at.to);
      const int64_t part = task % (across * down);
      const int64_t piece = (goes_down ? part / down : part % across) * columns_together - before;
      const int64_t first_column = std::max<int64_t>(piece, 0);
      int64_t first_row = (goes_down ? part % down : part / across) * rows_together;
      const int64_t last_row = std::min(rows.size, first_row + rows_together),
                    last_column = std::min(columns.size, piece + columns_together);
      if constexpr (bytes == 4) {
        const int64_t lined_rows = (last_row - first_row) / line * line,
                      lined_columns = (last_column - first_column) / 4 * 4;
        const T* block = source + first_row * rows.from_stride + first_column;
        T* turned = target + first_column * columns.to_stride + first_row;
        lines_loop(rows.from_stride)(block, rows.from_stride, turned, columns.to_stride, lined_rows, lined_columns);
        transpose_tile(block + lined_columns, rows.from_stride, turned + lined_columns * columns.to_stride,
                       columns.to_stride, lined_rows, last_column - first_column - lined_columns);
        first_row += lined_rows;
      }
      constexpr int64_t tile = tile_of(bytes);
      for (int64_t row = first_row; row < last_row; row += tile) {
        for (int64_t column = first_column; column < last_column; column += tile)
          transpose_tile(source + row * rows.from_stride + column, rows.from_stride,
                         target + column * columns.to_stride + row, columns.to_stride, std::min(tile, last_row - row),
                         std::min(tile, last_column - column));
      }
    }
  });
}

// The innermost axis stays where it is: runs of bytes, copied in the order of the axes.
void copy_runs(ThreadPool& pool, const char* from, char* to, std::span<const Axis> axes, int64_t run, int64_t bytes) {
  const auto run_bytes = static_cast<size_t>(run * bytes);
  pool.parallel_for(count_of(axes), 1 + bytes_per_task / (run * bytes), [&](int64_t begin, int64_t end) {
    visit_positions(axes, begin, end, bytes,
                    [&](Position at, int64_t) { copy_in_order(to + at.to, from + at.from, run_bytes); });
  });
}

// Runs of whole cache lines are taken in the order in which they are read, which counts for more than that of writing.
void copy_runs_as_read(ThreadPool& pool, const char* from, char* to, std::span<const Axis> outer, int64_t run,
                       int64_t bytes) {
  std::vector<Axis> axes(outer.begin(), outer.end());
  if (run * bytes >= line * static_cast<int64_t>(sizeof(uint32_t)))
    std::ranges::sort(axes, std::ranges::greater(), &Axis::from_stride);
  copy_runs(pool, from, to, axes, run, bytes);
}

}  // namespace

void transpose(ThreadPool& pool, const void* from, void* to, std::span<const int64_t> dims,
               std::span<const int64_t> permutation, size_t element_bytes) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const TransposePlan plan(dims, permutation, element_bytes);
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (plan.axes.empty()) {
    std::memcpy(to, from, plan.element_bytes);
    return;
  }
  const std::span<const Axis> axes(plan.axes);
  const Axis& last = axes.back();
  if (axes.size() == 1) {
    pool.parallel_for(last.size, 1 + bytes_per_task / bytes, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin * bytes, source + begin * bytes, static_cast<size_t>((end - begin) * bytes));
    });
    return;
  }
  if (last.from_stride == 1)
    return copy_runs_as_read(pool, source, target, axes.first(axes.size() - 1), last.size, bytes);

  std::vector<Axis> outer;
  Axis columns{};
  for (const Axis& axis : axes.first(axes.size() - 1)) {
    if (axis.from_stride == 1) {
      columns = axis;
    } else {
      outer.push_back(axis);
    }
  }
  switch (bytes) {
    case 1:
      return transpose_planes<uint8_t>(pool, source, target, outer, last, columns);
    case 2:
      return transpose_planes<uint16_t>(pool, source, target, outer, last, columns);
    case 4:
      return transpose_planes<uint32_t>(pool, source, target, outer, last, columns);
    case 8:
      return transpose_planes<uint64_t>(pool, source, target, outer, last, columns);
    case 16:
      return transpose_planes<Bytes16>(pool, source, target, outer, last, columns);
    default:
      return copy_runs_as_read(pool, source, target, axes, 1, bytes);
  }
}

}  // namespace tenon::kernels
