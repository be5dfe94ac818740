#include "kernels/transpose/transpose.h"

#include <algorithm>
#include <cstring>

#include "kernels/transpose/plan.h"

namespace tenon::kernels {
namespace {

using Axis = TransposePlan::Axis;

constexpr int64_t bytes_per_task = 64 << 10;
constexpr int64_t tile = 32;

struct Bytes16 {
  uint64_t low, high;
};
using U4 [[gnu::vector_size(16)]] = uint32_t;

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

// to[c * to_stride + r] = from[r * from_stride + c].
template <class T>
void transpose_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns) {
  int64_t r = 0;
  if constexpr (sizeof(T) == 4) {
    for (; r + 4 <= rows; r += 4) {
      int64_t c = 0;
      for (; c + 4 <= columns; c += 4) {
        U4 v[4];
        for (int i = 0; i < 4; ++i) std::memcpy(&v[i], from + (r + i) * from_stride + c, sizeof v[i]);
        const U4 low02 = __builtin_shufflevector(v[0], v[2], 0, 4, 1, 5),
                 high02 = __builtin_shufflevector(v[0], v[2], 2, 6, 3, 7);
        const U4 low13 = __builtin_shufflevector(v[1], v[3], 0, 4, 1, 5),
                 high13 = __builtin_shufflevector(v[1], v[3], 2, 6, 3, 7);
        v[0] = __builtin_shufflevector(low02, low13, 0, 4, 1, 5);
        v[1] = __builtin_shufflevector(low02, low13, 2, 6, 3, 7);
        v[2] = __builtin_shufflevector(high02, high13, 0, 4, 1, 5);
        v[3] = __builtin_shufflevector(high02, high13, 2, 6, 3, 7);
        for (int i = 0; i < 4; ++i) std::memcpy(to + (c + i) * to_stride + r, &v[i], sizeof v[i]);
      }
      for (; c < columns; ++c) {
        for (int i = 0; i < 4; ++i) copy_one(to + c * to_stride + r + i, from + (r + i) * from_stride + c);
      }
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = r; i < rows; ++i) copy_one(to + c * to_stride + i, from + i * from_stride + c);
  }
}

// The output's innermost axis is `rows` (an outer axis of the input), the input's innermost is `columns`.
template <class T>
void transpose_planes(ThreadPool& pool, const char* from, char* to, std::span<const Axis> outer, const Axis& rows,
                      const Axis& columns) {
  const int64_t row_tiles = (rows.size + tile - 1) / tile;
  const int64_t tasks = count_of(outer) * row_tiles;
  const int64_t bytes_each = tile * columns.size * static_cast<int64_t>(sizeof(T));
  pool.parallel_for(tasks, 1 + bytes_per_task / bytes_each, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Position at = position_of(outer, task / row_tiles, sizeof(T));
      const int64_t row = task % row_tiles * tile;
      const int64_t height = std::min(tile, rows.size - row);
      const T* src = reinterpret_cast<const T*>(from + at.from) + row * rows.from_stride;
      T* dst = reinterpret_cast<T*>(to + at.to) + row;
      for (int64_t column = 0; column < columns.size; column += tile) {
        transpose_tile(src + column, rows.from_stride, dst + column * columns.to_stride, columns.to_stride, height,
                       std::min(tile, columns.size - column));
      }
    }
  });
}

// The innermost axis stays where it is: runs of bytes.
void copy_runs(ThreadPool& pool, const char* from, char* to, std::span<const Axis> outer, int64_t run, int64_t bytes) {
  const int64_t run_bytes = run * bytes;
  pool.parallel_for(count_of(outer), 1 + bytes_per_task / run_bytes, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> index(outer.size());
    int64_t rest = begin;
    for (size_t i = outer.size(); i-- > 0;) {
      index[i] = rest % outer[i].size;
      rest /= outer[i].size;
    }
    int64_t source = position_of(outer, begin, bytes).from;
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * run_bytes, from + source, static_cast<size_t>(run_bytes));
      for (size_t axis = outer.size(); axis-- > 0;) {
        source += outer[axis].from_stride * bytes;
        if (++index[axis] < outer[axis].size) break;
        source -= outer[axis].size * outer[axis].from_stride * bytes;
        index[axis] = 0;
      }
    }
  });
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
  if (last.from_stride == 1) return copy_runs(pool, source, target, axes.first(axes.size() - 1), last.size, bytes);

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
      return copy_runs(pool, source, target, axes, 1, bytes);
  }
}

}  // namespace tenon::kernels
