#include "kernels/gemm_int8/gemm_int8.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "kernels/gemm/multiplication.h"

namespace tenon::kernels {
namespace {

constexpr double least_products_to_share = 1e6;

ThreadPool* pool_for(ThreadPool& pool, int64_t m, int64_t n, int64_t k) {
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return products < least_products_to_share ? nullptr : &pool;
}

// What a tile of codes' products still lacks.
struct TileEnd {
  const int32_t *a_zeros, *a_sums, *row_bias;  // by row; the bias may be null
  const int32_t *b_zeros, *b_sums;             // by column
};

// Rows of a tile become rows of the result: the zero points are taken out. The sum over k of (a - za) * (b - zb) is
// sum(a * b) - za * sum(b - zb) - zb * sum(a).
template <class Count>
void finish_rows(const int32_t* __restrict tile, int tile_columns, const TileEnd& end, int rows, Count columns,
                 int32_t* __restrict c, int64_t ldc) {
  uint32_t b_sums[most_int8_tile_columns], b_zeros[most_int8_tile_columns];
  for (int j = 0; j < columns; ++j) {
    b_sums[j] = static_cast<uint32_t>(end.b_sums[j]);
    b_zeros[j] = static_cast<uint32_t>(end.b_zeros[j]);
  }
  for (int i = 0; i < rows; ++i, tile += tile_columns, c += ldc) {
    const auto a_zero = static_cast<uint32_t>(end.a_zeros[i]), a_sum = static_cast<uint32_t>(end.a_sums[i]);
    const auto bias = static_cast<uint32_t>(end.row_bias ? end.row_bias[i] : 0);
    for (int j = 0; j < columns; ++j)
      c[j] = static_cast<int32_t>(static_cast<uint32_t>(tile[j]) + bias - a_zero * b_sums[j] - a_sum * b_zeros[j]);
  }
}

bool are_equal(const int32_t* zeros, int64_t count) {
  return std::all_of(zeros, zeros + count, [&](int32_t zero) { return zero == *zeros; });
}

// to[i] = bias[i] (or 0) - zero * sums[i].
void add_zero_point(const int32_t* bias, int32_t zero, const int32_t* sums, int64_t count, int32_t* to) {
  const auto factor = static_cast<uint32_t>(zero);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int32_t>(-factor * static_cast<uint32_t>(sums[i]));
  for (int64_t i = 0; bias && i < count; ++i)
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) + static_cast<uint32_t>(bias[i]));
}

struct Product {
  const BytePanels &a, &b;
  const int32_t* row_bias;
  int32_t* c;
  int64_t ldc;
  const int32_t *of_rows = nullptr, *of_columns = nullptr;  // what is added to rows and columns, or null

  void tile(int64_t row_panel, int64_t column_panel) const {
    const Int8Kernels& kernels = *a.kernels;
    const int64_t row = row_panel * kernels.tile_rows, column = column_panel * kernels.tile_columns;
    const auto rows = static_cast<int>(std::min<int64_t>(kernels.tile_rows, a.lanes - row));
    const auto columns = static_cast<int>(std::min<int64_t>(kernels.tile_columns, b.lanes - column));
    int32_t sums[most_int8_tile_rows * most_int8_tile_columns];
    const int64_t groups = b.steps() / kernels.k_group;
    const uint8_t *left = a.codes + row_panel * a.panel_bytes(), *right = b.codes + column_panel * b.panel_bytes();
    if (of_rows && (rows == kernels.tile_rows || a.lanes == 1) && columns == kernels.tile_columns) {
      const auto multiply_into = a.lanes == 1 ? kernels.one_row_into : kernels.all_rows_into;
      return multiply_into(groups, left, right, of_rows + row, of_columns + column, c + row * ldc + column, ldc);
    }
    const auto multiply = a.lanes == 1 ? kernels.one_row : rows <= 2 ? kernels.two_rows : kernels.all_rows;
    multiply(groups, left, right, sums);
    const TileEnd end{a.zeros + row, a.sums + row, row_bias ? row_bias + row : nullptr, b.zeros + column,
                      b.sums + column};
    const auto finish = [&](auto count) {
      finish_rows(sums, kernels.tile_columns, end, rows, count, c + row * ldc + column, ldc);
    };
    if (columns == 8)
      finish(std::integral_constant<int, 8>{});
    else if (columns == 32)
      finish(std::integral_constant<int, 32>{});
    else
      finish(columns);
  }

  void tiles(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    for (int64_t j = column; j < column_end; ++j) {
      for (int64_t i = row; i < row_end; ++i) tile(i, j);
    }
  }
};

BytePanels panels_of(const Int8Kernels& kernels, GemmSide side, int64_t lanes, int64_t k) {
  return {&kernels, side, lanes, k, nullptr, nullptr, nullptr};
}

}  // namespace

std::vector<const Int8Kernels*> available_int8_kernels() {
  std::vector<const Int8Kernels*> result = {&int8_kernels_portable};
  [[maybe_unused]] const Isa isa = best_isa();
#if defined(__aarch64__)
  if (isa == Isa::neon && cpu_features().dotprod) result.push_back(&int8_kernels_neon_dotprod);
  if (isa == Isa::neon && cpu_features().i8mm) result.push_back(&int8_kernels_neon_i8mm);
#elif defined(__x86_64__)
  if (isa == Isa::avx2 || isa == Isa::avx512) result.push_back(&int8_kernels_avx2);
  if (isa == Isa::avx512 && cpu_features().avx512_vnni) result.push_back(&int8_kernels_avx512_vnni);
  if (isa == Isa::avx512 && cpu_features().amx) result.push_back(&int8_kernels_amx);
#endif
  return result;
}

const Int8Kernels& int8_kernels() { return *available_int8_kernels().back(); }

PackedBytes::PackedBytes(ThreadPool& pool, GemmSide side, int64_t lanes, int64_t k, ByteMatrix matrix,
                         ByteZeroPoints zeros, const Int8Kernels& kernels, PackedStorage& storage)
    : panels_(panels_of(kernels, side, lanes, k)) {
  buffer_ = storage.get(panels_.bytes(), [&](void* memory) {
    panels_.place(memory);
    pack_panels(&pool, panels_, matrix, zeros);
  });
  panels_.place(const_cast<void*>(buffer_.as<void>()));
}

void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* row_bias, int32_t* c,
                     int64_t ldc) {
  if (a.lanes <= 0 || b.lanes <= 0) return;
  Product product{a, b, row_bias, c, ldc};
  // Where all rows have one zero point, and all columns, what they add is a number for each row and one for each
  // column.
  const bool is_simple = a.kernels->all_rows_into && are_equal(a.zeros, a.lanes) && are_equal(b.zeros, b.lanes);
  const Scratch added(is_simple ? static_cast<size_t>(a.lanes + b.lanes) * sizeof(int32_t) : 0);
  if (is_simple) {
    auto *of_rows = added.as<int32_t>(), *of_columns = of_rows + a.lanes;
    add_zero_point(row_bias, b.zeros[0], a.sums, a.lanes, of_rows);
    add_zero_point(nullptr, a.zeros[0], b.sums, b.lanes, of_columns);
    product.of_rows = of_rows;
    product.of_columns = of_columns;
  }
  share_panels(pool, *a.kernels, a.panels(), b.panels(), a.panel_bytes(),
               [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                 product.tiles(row, row_end, column, column_end);
               });
}

void gemm_int8(ThreadPool& pool, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteZeroPoints a_zeros, ByteMatrix b,
               ByteZeroPoints b_zeros, int32_t* c, int64_t ldc) {
  const Int8Kernels& kernels = int8_kernels();
  ThreadPool* shared = pool_for(pool, m, n, k);
  BytePanels left = panels_of(kernels, GemmSide::left, m, k), right = panels_of(kernels, GemmSide::right, n, k);
  const Scratch left_memory(left.bytes()), right_memory(right.bytes());
  left.place(left_memory.as<void>());
  right.place(right_memory.as<void>());
  pack_panels(shared, left, a, a_zeros);
  pack_panels(shared, right, b, b_zeros);
  multiply_panels(shared, left, right, nullptr, c, ldc);
}

void gemm_int8(ThreadPool& pool, int64_t m, ByteMatrix a, ByteZeroPoints a_zeros, const PackedBytes& b, int32_t* c,
               int64_t ldc) {
  const BytePanels& right = b.panels();
  ThreadPool* shared = pool_for(pool, m, right.lanes, right.k);
  BytePanels left = panels_of(*right.kernels, GemmSide::left, m, right.k);
  const Scratch left_memory(left.bytes());
  left.place(left_memory.as<void>());
  pack_panels(shared, left, a, a_zeros);
  multiply_panels(shared, left, right, nullptr, c, ldc);
}

}  // namespace tenon::kernels
