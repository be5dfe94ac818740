#include "kernels/gemm_int8/gemm_int8.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "kernels/gemm/multiplication.h"

namespace tenon::kernels {
namespace {

constexpr double least_products_to_share = 1e6;

ThreadPool* pool_for(ThreadPool* pool, int64_t m, int64_t n, int64_t k) {
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return products < least_products_to_share ? nullptr : pool;
}

bool are_equal(const int32_t* zeros, int64_t count) {
  return std::all_of(zeros, zeros + count, [&](int32_t zero) { return zero == *zeros; });
}

bool are_zero(const BytePanels& panels) { return panels.zeros[0] == 0 && are_equal(panels.zeros, panels.lanes); }

// to[i] = bias[i] (or 0) - zero * sums[i], filled up to whole panels. Sums may be missing where zero is 0.
void add_zero_point(const int32_t* bias, int32_t zero, const BytePanels& panels, int32_t* to) {
  std::fill_n(to, panels.panels() * panels.width(), 0);
  if (bias) std::copy_n(bias, panels.lanes, to);
  const auto factor = static_cast<uint32_t>(zero);
  for (int64_t i = 0; factor != 0 && i < panels.lanes; ++i)
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) - factor * static_cast<uint32_t>(panels.sums[i]));
}

// The sum over k of (a - za) * (b - zb) is sum(a * b) - za * sum(b - zb) - zb * sum(a). Where all rows have one zero
// point, and all columns, what they add to the products of codes is a number for each row and one for each column.
class Product {
 public:
  Product(const BytePanels& a, const BytePanels& b, const int32_t* row_bias, const int32_t* column_bias)
      : a_(a),
        b_(b),
        is_simple_(are_equal(a.zeros, a.lanes) && are_equal(b.zeros, b.lanes)),
        added_(static_cast<size_t>(a.panels() * a.width() + b.panels() * b.width()) * sizeof(int32_t)),
        of_rows_(added_.as<int32_t>()),
        of_columns_(of_rows_ + a.panels() * a.width()),
        groups_(b.steps() / b.group()),
        a_panel_bytes_(a.panel_bytes()),
        b_panel_bytes_(b.panel_bytes()) {
    add_zero_point(row_bias, is_simple_ ? b.zeros[0] : 0, a, of_rows_);
    add_zero_point(column_bias, is_simple_ ? a.zeros[0] : 0, b, of_columns_);
  }

  // Writes a whole tile, be it at the edge of the product.
  void tile(int64_t row_panel, int64_t column_panel, int32_t* to, int64_t ld) const {
    const Int8Kernels& kernels = *a_.kernels;
    const int64_t row = row_panel * kernels.tile_rows, column = column_panel * kernels.tile_columns;
    const auto multiply = a_.lanes == 1                   ? kernels.one_row
                          : a_.lanes - row <= kernels.few ? kernels.few_rows
                                                          : kernels.all_rows;
    multiply(groups_, a_.codes + row_panel * a_panel_bytes_, b_.codes + column_panel * b_panel_bytes_, of_rows_ + row,
             of_columns_ + column, to, ld);
    if (!is_simple_) subtract_zero_points(row, column, to, ld);
  }

  // How many rows a panel has, and how many columns some panels from this one on have.
  int64_t rows_of(int64_t panel) const {
    return std::min<int64_t>(a_.kernels->tile_rows, a_.lanes - panel * a_.kernels->tile_rows);
  }
  int64_t columns_of(int64_t panel, int64_t panels) const {
    const int64_t width = a_.kernels->tile_columns;
    return std::min<int64_t>(panels * width, b_.lanes - panel * width);
  }

 private:
  void subtract_zero_points(int64_t row, int64_t column, int32_t* to, int64_t ld) const {
    const auto columns = static_cast<int>(columns_of(column / a_.kernels->tile_columns, 1));
    for (int64_t i = row; i < std::min<int64_t>(row + a_.kernels->tile_rows, a_.lanes); ++i, to += ld) {
      const auto zero = static_cast<uint32_t>(a_.zeros[i]), sum = static_cast<uint32_t>(a_.sums[i]);
      for (int j = 0; j < columns; ++j) {
        to[j] = static_cast<int32_t>(static_cast<uint32_t>(to[j]) - zero * static_cast<uint32_t>(b_.sums[column + j]) -
                                     sum * static_cast<uint32_t>(b_.zeros[column + j]));
      }
    }
  }

  const BytePanels &a_, &b_;
  bool is_simple_;
  Scratch added_;
  int32_t *of_rows_, *of_columns_;
  int64_t groups_, a_panel_bytes_, b_panel_bytes_;
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
  const Product product(a, b, row_bias, nullptr);
  const int width = a.kernels->tile_columns;
  const auto multiply = [&](int64_t i, int64_t j) {
    const int64_t rows = product.rows_of(i), columns = product.columns_of(j, 1);
    int32_t* to = c + i * a.kernels->tile_rows * ldc + j * width;
    if ((rows == a.kernels->tile_rows || a.lanes == 1) && columns == width) return product.tile(i, j, to, ldc);
    int32_t sums[most_int8_tile_rows * most_int8_tile_columns];
    product.tile(i, j, sums, width);
    for (int64_t row = 0; row < rows; ++row) std::copy_n(sums + row * width, columns, to + row * ldc);
  };
  share_panels(pool, *a.kernels, a.panels(), b.panels(), a.panel_bytes(),
               [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                 for (int64_t j = column; j < column_end; ++j) {
                   for (int64_t i = row; i < row_end; ++i) multiply(i, j);
                 }
               });
}

void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* column_bias,
                     FinishSums finish) {
  if (a.lanes <= 0 || b.lanes <= 0) return;
  constexpr int64_t columns_at_once = 4;  // of panels: enough for rows of vectors
  const Product product(a, b, nullptr, column_bias);
  const int height = a.kernels->tile_rows, width = a.kernels->tile_columns;
  const int64_t ld = columns_at_once * width;
  const auto multiply = [&](int64_t row, int64_t column, int64_t columns, int32_t* sums) {
    for (int64_t j = 0; j < columns; ++j) product.tile(row, column + j, sums + j * width, ld);
    finish({row * height, column * width, product.rows_of(row), product.columns_of(column, columns), sums, ld});
  };
  share_panels(pool, *a.kernels, a.panels(), b.panels(), a.panel_bytes(),
               [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                 const Scratch sums(static_cast<size_t>(height * ld) * sizeof(int32_t));
                 for (int64_t j = column; j < column_end; j += columns_at_once) {
                   for (int64_t i = row; i < row_end; ++i)
                     multiply(i, j, std::min(columns_at_once, column_end - j), sums.as<int32_t>());
                 }
               });
}

namespace {

// The left side, packed for its product with the right one.
class PackedLeft {
 public:
  PackedLeft(ThreadPool* pool, int64_t m, ByteMatrix a, ByteZeroPoints zeros, const BytePanels& right)
      : panels_(panels_of(*right.kernels, GemmSide::left, m, right.k)), memory_(panels_.bytes()) {
    panels_.place(memory_.as<void>());
    pack_panels(pool, panels_, a, zeros, !are_zero(right));
  }
  const BytePanels& panels() const { return panels_; }

 private:
  BytePanels panels_;
  Scratch memory_;
};

}  // namespace

void gemm_int8(ThreadPool* pool, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteZeroPoints a_zeros, ByteMatrix b,
               ByteZeroPoints b_zeros, const int32_t* column_bias, FinishSums finish) {
  ThreadPool* shared = pool_for(pool, m, n, k);
  BytePanels right = panels_of(int8_kernels(), GemmSide::right, n, k);
  const Scratch memory(right.bytes());
  right.place(memory.as<void>());
  pack_panels(shared, right, b, b_zeros);
  const PackedLeft left(shared, m, a, a_zeros, right);
  multiply_panels(shared, left.panels(), right, column_bias, finish);
}

void gemm_int8(ThreadPool* pool, int64_t m, ByteMatrix a, ByteZeroPoints a_zeros, const PackedBytes& b,
               const int32_t* column_bias, FinishSums finish) {
  const BytePanels& right = b.panels();
  ThreadPool* shared = pool_for(pool, m, right.lanes, right.k);
  const PackedLeft left(shared, m, a, a_zeros, right);
  multiply_panels(shared, left.panels(), right, column_bias, finish);
}

}  // namespace tenon::kernels
