#include "kernels/gemm_any/gemm_any.h"

#include <algorithm>
#include <type_traits>

#include "base/rounding.h"
#include "kernels/gemm_any/tile.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Steps that are multiplied before the next ones are packed: those of a column of tiles stay in the first cache.
constexpr int64_t most_steps = 256;
// Bytes of a step that a block has in either direction, in whole tiles: what is packed for it stays in the second
// cache.
constexpr int64_t most_bytes_of_step = 2048;
// Multiplications that are worth handing to another thread.
constexpr int64_t least_work = 100000;

template <class T>
struct Product {
  const AnyTile<T>& tile;
  AnyLines<T> rows, columns;
  int64_t k;
  T* c;
  int64_t ldc;

  // A block of as many tiles at most, from those at `first_row` and `first_column` on.
  void multiply_block(int64_t first_row, int64_t row_tiles, int64_t first_column, int64_t column_tiles) const {
    row_tiles = std::min(row_tiles, divide_up(rows.count - first_row, tile.rows));
    column_tiles = std::min(column_tiles, divide_up(columns.count - first_column, tile.columns));
    const int64_t at_once = std::min(k, most_steps);
    const int64_t left_size = at_once * tile.rows, right_size = at_once * tile.columns;
    const int64_t ready = reads_rows_in_place() ? std::min(row_tiles, (rows.count - first_row) / tile.rows) : 0;
    const Scratch scratch(static_cast<size_t>(row_tiles * left_size + right_size + tile.rows * tile.columns) *
                          sizeof(T));
    T* const right = scratch.as<T>();
    T* const left = right + right_size;
    T* const edge = left + row_tiles * left_size;
    for (int64_t step = 0; step < k; step += at_once) {
      const int64_t steps = std::min(at_once, k - step);
      for (int64_t i = ready; i < row_tiles; ++i)
        tile.pack_rows(rows, first_row + i * tile.rows, step, steps, left + i * left_size);
      for (int64_t j = 0; j < column_tiles; ++j) {
        const int64_t column = first_column + j * tile.columns;
        // What is read once is read where it is.
        const bool in_place = row_tiles == 1 && columns.stride == 1 && columns.count - column >= tile.columns;
        if (!in_place) tile.pack_columns(columns, column, step, steps, right);
        const T* const b = in_place ? columns.data + column + step * columns.step : right;
        const int64_t ldb = in_place ? columns.step : tile.columns;
        for (int64_t i = 0; i < row_tiles; ++i) {
          const int64_t row = first_row + i * tile.rows;
          const bool is_ready = i < ready;
          const T* const a = is_ready ? rows.data + row * rows.stride + step : left + i * left_size;
          multiply_tile(row, column, steps, a, is_ready, b, ldb, step > 0, edge);
        }
      }
    }
  }

  // Whether full tiles read their rows where they are. Rows that lie whole pages apart are in each other's way in the
  // first cache.
  bool reads_rows_in_place() const {
    constexpr int64_t page = 4096 / sizeof(T);
    return tile.multiply_in_place && rows.step == 1 && rows.stride % page != 0;
  }

  // At the ends of C, `edge` is multiplied instead.
  void multiply_tile(int64_t row, int64_t column, int64_t steps, const T* a, bool a_in_place, const T* b, int64_t ldb,
                     bool adds, T* edge) const {
    const int64_t row_count = std::min<int64_t>(tile.rows, rows.count - row);
    const int64_t column_count = std::min<int64_t>(tile.columns, columns.count - column);
    T* const to = c + row * ldc + column;
    const auto multiply = [&](T* result, int64_t step) {
      if (a_in_place) return tile.multiply_in_place(steps, a, rows.stride, b, ldb, adds, result, step);
      tile.multiply(row_count, steps, a, b, ldb, adds, result, step);
    };
    if (row_count == tile.rows && column_count == tile.columns) return multiply(to, ldc);
    if (adds) {
      for (int64_t i = 0; i < row_count; ++i) std::copy_n(to + i * ldc, column_count, edge + i * tile.columns);
    }
    multiply(edge, tile.columns);
    for (int64_t i = 0; i < row_count; ++i) std::copy_n(edge + i * tile.columns, column_count, to + i * ldc);
  }

  void run(ThreadPool& pool) const {
    if (k == 0) {
      for (int64_t i = 0; i < rows.count; ++i) std::fill_n(c + i * ldc, columns.count, T{});
      return;
    }
    constexpr int64_t longest = most_bytes_of_step / sizeof(T);
    int64_t row_tiles = longest / tile.rows, column_tiles = longest / tile.columns, blocks_down, blocks, work;
    while (true) {
      const int64_t height = row_tiles * tile.rows, width = column_tiles * tile.columns;
      blocks_down = divide_up(rows.count, height);
      blocks = blocks_down * divide_up(columns.count, width);
      work = std::max<int64_t>(1, std::min(rows.count, height) * std::min(columns.count, width) * k);
      // Enough of them for all threads, and as square as can be.
      const bool is_small = work <= 2 * least_work || row_tiles + column_tiles == 2;
      if (pool.size() == 1 || blocks >= 4 * pool.size() || is_small) break;
      (column_tiles > 1 && (width >= height || row_tiles == 1) ? column_tiles : row_tiles) /= 2;
    }
    pool.parallel_for(blocks, 1 + least_work / work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        multiply_block(i % blocks_down * row_tiles * tile.rows, row_tiles,
                       i / blocks_down * column_tiles * tile.columns, column_tiles);
      }
    });
  }
};

}  // namespace

template <class T>
void gemm_any(ThreadPool& pool, int64_t m, int64_t n, int64_t k, AnyMatrix<T> a, AnyMatrix<T> b, T* c, int64_t ldc) {
  // Unsigned, because signed integers must not overflow.
  using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  const Product<U> product = {
      .tile = gemm_any_kernels().tile<U>(),
      .rows = {reinterpret_cast<const U*>(a.data), m, a.transposed ? 1 : a.ld, a.transposed ? a.ld : 1},
      .columns = {reinterpret_cast<const U*>(b.data), n, b.transposed ? b.ld : 1, b.transposed ? 1 : b.ld},
      .k = k,
      .c = reinterpret_cast<U*>(c),
      .ldc = ldc};
  product.run(pool);
}

#define TENON_INSTANTIATE(T) \
  template void gemm_any<T>(ThreadPool&, int64_t, int64_t, int64_t, AnyMatrix<T>, AnyMatrix<T>, T*, int64_t);
TENON_INSTANTIATE(double)
TENON_INSTANTIATE(int32_t)
TENON_INSTANTIATE(uint32_t)
TENON_INSTANTIATE(int64_t)
TENON_INSTANTIATE(uint64_t)
#undef TENON_INSTANTIATE

}  // namespace tenon::kernels
