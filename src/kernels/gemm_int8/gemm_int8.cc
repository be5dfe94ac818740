#include "kernels/gemm_int8/gemm_int8.h"

#include <algorithm>
#include <cmath>

#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/gemm/multiplication.h"
#include "kernels/quantize/requantize.h"

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

bool has_one_zero(const BytePanels& panels) { return panels.has_one_zero || are_equal(panels.zeros, panels.lanes); }

bool are_zero(const BytePanels& panels) { return panels.zeros[0] == 0 && has_one_zero(panels); }

// to[i] = bias[i] (or 0) - zero * sums[i], filled up to whole panels. Sums may be missing where zero is 0.
void add_zero_point(const int32_t* bias, int32_t zero, const BytePanels& panels, int32_t* __restrict to) {
  const auto factor = static_cast<uint32_t>(zero);
  const int64_t lanes = panels.lanes;
  const auto subtract = [&](auto first) {
    for (int64_t i = 0; i < lanes; ++i)
      to[i] = static_cast<int32_t>(static_cast<uint32_t>(first(i)) - factor * static_cast<uint32_t>(panels.sums[i]));
  };
  if (bias && factor != 0)
    subtract([bias](int64_t i) { return bias[i]; });
  else if (bias)
    std::copy_n(bias, lanes, to);
  else if (factor != 0)
    subtract([](int64_t) { return 0; });
  else
    std::fill_n(to, lanes, 0);
  std::fill(to + lanes, to + panels.panels() * panels.width(), 0);
}

// The sum over k of (a - za) * (b - zb) is sum(a * b) - za * sum(b - zb) - zb * sum(a). Where all rows have one zero
// point, and all columns, what they add to the products of codes is a number for each row and one for each column.
class Product {
 public:
  Product(const BytePanels& a, const BytePanels& b, const int32_t* row_bias, const int32_t* column_bias)
      : a_(a),
        b_(b),
        is_simple_(has_one_zero(a) && has_one_zero(b)),
        added_(static_cast<size_t>(a.panels() * a.width() + b.panels() * b.width()) * sizeof(int32_t)),
        of_rows_(added_.as<int32_t>()),
        of_columns_(of_rows_ + a.panels() * a.width()),
        groups_(b.steps() / b.group()),
        a_panel_bytes_(a.panel_bytes()),
        b_panel_bytes_(b.panel_bytes()) {
    add_zero_point(row_bias, is_simple_ ? b.zeros[0] : 0, a, of_rows_);
    add_zero_point(column_bias, is_simple_ ? a.zeros[0] : 0, b, of_columns_);
    adds_to_rows_ = std::any_of(of_rows_, of_rows_ + a.lanes, [](int32_t number) { return number != 0; });
  }

  // Writes a whole tile, be it at the edge of the product.
  void tile(int64_t row_panel, int64_t column_panel, int32_t* to, int64_t ld) const {
    const Int8Kernels& kernels = *a_.kernels;
    const int64_t row = row_panel * kernels.tile_rows, column = column_panel * kernels.tile_columns;
    const auto multiply = a_.lanes == 1                    ? kernels.one_row
                          : a_.lanes - row <= kernels.few  ? kernels.few_rows
                          : a_.lanes - row <= kernels.some ? kernels.some_rows
                                                           : kernels.all_rows;
    multiply(groups_, a_.codes + row_panel * a_panel_bytes_, b_.codes + column_panel * b_panel_bytes_, of_rows_ + row,
             of_columns_ + column, to, ld);
    if (!is_simple_) subtract_zero_points({row, column, rows_of(row_panel), columns_of(column_panel, 1), to, ld}, to);
  }

  // Writes whole tiles side by side.
  void tiles(int64_t row_panel, int64_t column_panel, int64_t count, int32_t* to, int64_t ld) const {
    const Int8Kernels& kernels = *a_.kernels;
    const int64_t row = row_panel * kernels.tile_rows, width = kernels.tile_columns;
    int64_t i = 0;
    for (; kernels.two_panels && a_.lanes - row > kernels.some && i + 2 <= count; i += 2) {
      const int64_t column = (column_panel + i) * width;
      kernels.two_panels(groups_, a_.codes + row_panel * a_panel_bytes_, b_.codes + (column_panel + i) * b_panel_bytes_,
                         b_panel_bytes_, of_rows_ + row, of_columns_ + column, to + i * width, ld);
      if (is_simple_) continue;
      const int64_t rows = rows_of(row_panel), columns = columns_of(column_panel + i, 2);
      subtract_zero_points({row, column, rows, columns, to + i * width, ld}, to + i * width);
    }
    for (; i < count; ++i) tile(row_panel, column_panel + i, to + i * width, ld);
  }

  // What all_tiles reads for a tile.
  void describe(int64_t row_panel, int64_t column_panel, Int8Tile& result) const {
    const Int8Kernels& kernels = *a_.kernels;
    const int64_t row = row_panel * kernels.tile_rows, column = column_panel * kernels.tile_columns;
    if (a_.unpacked && row + kernels.tile_rows <= a_.lanes) {
      result.a = a_.unpacked + row * a_.unpacked_ld;
      result.row_stride = a_.unpacked_ld;
      result.step_stride = kernels.left_k_group;
    } else {
      result.a = a_.codes + row_panel * a_panel_bytes_;
      result.row_stride = kernels.left_k_group;
      result.step_stride = kernels.left_k_group * kernels.tile_rows;
    }
    result.few = a_.lanes - row <= kernels.few;
    result.b = b_.codes + column_panel * b_panel_bytes_;
    result.of_rows = adds_to_rows_ ? of_rows_ + row : nullptr;
    result.of_columns = of_columns_ + column;
  }
  int64_t groups() const { return groups_; }
  // Whether numbers for each row and each column are all that is added to the products of codes.
  bool is_simple() const { return is_simple_; }
  const int32_t* of_rows() const { return adds_to_rows_ ? of_rows_ : nullptr; }
  // Whether a number for each column is all that is added to the products of codes.
  bool adds_to_columns_alone() const { return is_simple_ && !adds_to_rows_; }
  const int32_t* of_columns() const { return of_columns_; }
  int64_t width() const { return a_.kernels->tile_columns; }
  // What is left to do to such sums.
  void complete(const SumsBlock& block, int32_t* sums) const {
    if (!is_simple_) subtract_zero_points(block, sums);
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
  void subtract_zero_points(const SumsBlock& block, int32_t* to) const {
    const int64_t column = block.column;
    for (int64_t i = block.row; i < block.row + block.rows; ++i, to += block.ld) {
      const auto zero = static_cast<uint32_t>(a_.zeros[i]), sum = static_cast<uint32_t>(a_.sums[i]);
      for (int64_t j = 0; j < block.columns; ++j) {
        to[j] = static_cast<int32_t>(static_cast<uint32_t>(to[j]) - zero * static_cast<uint32_t>(b_.sums[column + j]) -
                                     sum * static_cast<uint32_t>(b_.zeros[column + j]));
      }
    }
  }

  const BytePanels &a_, &b_;
  bool is_simple_, adds_to_rows_;
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
  const size_t magnitude_bytes = panels_.magnitude_bytes();
  const auto magnitudes = [&] { return panels_.sums + panels_.panels() * panels_.width(); };
  buffer_ = storage.get(panels_.bytes() + magnitude_bytes, [&](void* memory) {
    panels_.place(memory);
    pack_panels(&pool, panels_, matrix, zeros);
    if (magnitude_bytes > 0) sum_magnitudes(&pool, panels_, magnitudes());
  });
  panels_.place(const_cast<void*>(buffer_.as<void>()));
  if (magnitude_bytes > 0) panels_.magnitudes = magnitudes();
  panels_.has_one_zero = lanes > 0 && are_equal(panels_.zeros, lanes);
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

namespace {

// Tiles of some rows and columns, each finished when it is complete. Those of a right panel come one after the other,
// so that it stays in the first cache.
class FinishedTiles final : public Int8Tiles {
 public:
  FinishedTiles(const Product& product, const Int8Kernels& kernels, int64_t row, int64_t row_end, int64_t column,
                int64_t column_end, FinishSums finish)
      : product_(product),
        height_(kernels.tile_rows),
        width_(kernels.tile_columns),
        row_(row),
        first_row_(row),
        row_end_(row_end),
        column_(column),
        column_end_(column_end),
        finish_(finish),
        memory_(static_cast<size_t>(2 * height_ * width_) * sizeof(int32_t)) {}

  bool next(Int8Tile& tile) override {
    if (tiles_ - finished_ == 2) finish_oldest();
    if (row_ == row_end_) {
      row_ = first_row_;
      ++column_;
    }
    if (column_ == column_end_) return false;
    tile.c = memory_.as<int32_t>() + tiles_ % 2 * height_ * width_;
    tile.ldc = width_;
    product_.describe(row_, column_, tile);
    blocks_[tiles_ % 2] = {
        row_ * height_, column_ * width_, product_.rows_of(row_), product_.columns_of(column_, 1), tile.c, width_};
    ++tiles_;
    ++row_;
    return true;
  }

  void finish_rest() {
    while (finished_ < tiles_) finish_oldest();
  }

 private:
  void finish_oldest() {
    const SumsBlock& block = blocks_[finished_ % 2];
    product_.complete(block, memory_.as<int32_t>() + finished_ % 2 * height_ * width_);
    finish_(block);
    ++finished_;
  }

  const Product& product_;
  int64_t height_, width_;
  int64_t row_, first_row_, row_end_, column_, column_end_;
  FinishSums finish_;
  Scratch memory_;
  SumsBlock blocks_[2] = {};
  int64_t tiles_ = 0, finished_ = 0;
};

// A row alone by some panels. More sums at once are finished than of several rows.
void multiply_row(const Product& product, int64_t column, int64_t column_end, FinishSums finish) {
  constexpr int64_t at_once = 32;
  const int64_t width = product.width();
  const Scratch sums(static_cast<size_t>(at_once * width) * sizeof(int32_t));
  for (int64_t first = column; first < column_end; first += at_once) {
    const int64_t count = std::min(at_once, column_end - first);
    for (int64_t i = 0; i < count; ++i) product.tile(0, first + i, sums.as<int32_t>() + i * width, at_once * width);
    finish({0, first * width, 1, product.columns_of(first, count), sums.as<int32_t>(), at_once * width});
  }
}

// Products of some panels that become codes at once.
class CodesOfPanels {
 public:
  CodesOfPanels(const Product& product, const BytePanels& a, const BytePanels& b, const CodesOfSums& codes)
      : product_(product),
        a_(a),
        b_(b),
        codes_(codes),
        steps_(b.steps() / code_step_bytes),
        is_limited_(std::all_of(codes.scales, codes.scales + b.lanes, [](float scale) { return scale < 0.5f; })) {}

  static bool can_make(const Product& product, const BytePanels& a, FinishSums finish) {
    return finish.codes() && !finish.codes()->added.addends && a.kernels->to_codes && a.lanes > a.kernels->few &&
           a.k > 0 && product.adds_to_columns_alone();
  }

  void multiply(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    const int64_t tiles = row_end - row, first = column * code_tile_columns;
    const Scratch memory(static_cast<size_t>(2 * steps_) * sizeof(int64_t) +
                         static_cast<size_t>(tiles) * (sizeof(CodeRows) + code_tile_rows * sizeof(uint8_t*)) +
                         static_cast<size_t>(codes_.ldy + code_tile_columns));
    const auto offsets = memory.as<int64_t>();
    const auto rows = reinterpret_cast<CodeRows*>(offsets + 2 * steps_);
    const auto to = reinterpret_cast<uint8_t**>(rows + tiles);
    auto* spare = reinterpret_cast<uint8_t*>(to + tiles * code_tile_rows);
    for (int64_t i = 0; i < tiles; ++i) {
      Int8Tile tile;
      product_.describe(row + i, column, tile);
      int64_t* own = offsets + (tile.step_stride == code_step_bytes ? 0 : steps_);
      for (int64_t step = 0; step < steps_; ++step) own[step] = step * tile.step_stride;
      rows[i] = {tile.a, tile.row_stride, own, to + i * code_tile_rows};
      for (int64_t j = 0; j < code_tile_rows; ++j) {
        const int64_t number = (row + i) * code_tile_rows + j;
        to[i * code_tile_rows + j] = number < a_.lanes ? codes_.y + number * codes_.ldy + first : spare;
      }
    }
    a_.kernels->to_codes({.tiles = rows,
                          .tile_count = tiles,
                          .steps = steps_,
                          .weights = b_.codes + column * b_.panel_bytes(),
                          .panels = column_end - column,
                          .panels_at_once = code_panels_at_once(b_.panel_bytes()),
                          .bias = product_.of_columns() + first,
                          .scales = codes_.scales + first,
                          .stored = product_.columns_of(column, column_end - column),
                          .is_limited = is_limited_,
                          .is_signed = codes_.is_signed,
                          .zero = codes_.zero});
  }

 private:
  const Product& product_;
  const BytePanels &a_, &b_;
  const CodesOfSums& codes_;
  const int64_t steps_;
  const bool is_limited_;
};

// Products of some panels that become codes in registers.
class CodesOfTiles {
 public:
  CodesOfTiles(const Product& product, const BytePanels& a, const BytePanels& b, const int32_t* column_bias,
               const CodesOfSums& codes)
      : product_(product),
        a_(a),
        b_(b),
        codes_(codes),
        columns_(b.panels() * b.width()),
        numbers_(static_cast<size_t>(2 * columns_) * sizeof(float)),
        scales_(numbers_.as<float>()),
        addends_(codes.added.addends ? scales_ + columns_ : nullptr) {
    std::fill_n(scales_, 2 * columns_, 0.0f);
    std::copy_n(codes.scales, b.lanes, scales_);
    if (addends_) std::copy_n(codes.added.addends, b.lanes, addends_);
    for (int64_t i = 0; i < b.lanes; ++i) {
      const double bias = column_bias ? std::abs(static_cast<double>(column_bias[i])) : 0;
      range_ = std::min(range_, code_range(bias + largest_product(i), codes.scales[i]));
    }
  }

  static bool can_make(const Product& product, const BytePanels& a, FinishSums finish) {
    return finish.codes() && a.kernels->codes_of_tiles && a.lanes > 1 && product.is_simple();
  }

  void multiply(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    for (int64_t j = column; j < column_end; j += most_int8_code_panels)
      multiply_panels(row, row_end, j, std::min<int64_t>(most_int8_code_panels, column_end - j));
  }

 private:
  // Of a column's sums without the bias, either way.
  double largest_product(int64_t column) const {
    constexpr int32_t lowest = -128, highest = 127;
    constexpr int64_t most_steps = 1 << 22;  // whose magnitudes do not overflow
    const double steps = static_cast<double>(b_.k),
                 largest_code = std::max(highest - a_.zeros[0], a_.zeros[0] - lowest);
    return largest_code * (b_.magnitudes && b_.k <= most_steps ? b_.magnitudes[column] : 255 * steps);
  }

  void multiply_panels(int64_t row, int64_t row_end, int64_t column, int64_t panels) const {
    const int64_t first_row = row * a_.width(), first_column = column * b_.width();
    const int32_t* of_rows = product_.of_rows();
    a_.kernels->codes_of_tiles({.groups = product_.groups(),
                                .a = a_.codes + row * a_.panel_bytes(),
                                .b = b_.codes + column * b_.panel_bytes(),
                                .rows = std::min(row_end * a_.width(), a_.lanes) - first_row,
                                .columns = product_.columns_of(column, panels),
                                .of_rows = of_rows ? of_rows + first_row : nullptr,
                                .of_columns = product_.of_columns() + first_column,
                                .scales = scales_ + first_column,
                                .range = range_,
                                .lowest = codes_.is_signed ? -128 : 0,
                                .highest = codes_.is_signed ? 127 : 255,
                                .zero = codes_.zero,
                                .y = codes_.y + first_row * codes_.ldy + first_column,
                                .ldy = codes_.ldy,
                                .addends = addends_ ? addends_ + first_column : nullptr,
                                .factor = codes_.added.factor,
                                .code_zero = codes_.added.code_zero});
  }

  const Product& product_;
  const BytePanels &a_, &b_;
  const CodesOfSums& codes_;
  int64_t columns_;  // of whole panels
  const Scratch numbers_;
  float *scales_, *addends_;
  CodeRange range_ = CodeRange::tiny;
};

}  // namespace

void CodesOfSums::operator()(const SumsBlock& block) const {
  const SumRows sums{block.sums, block.ld, block.rows, block.columns};
  const Scales of{scales + block.column, 1};
  uint8_t* to = y + block.row * ldy + block.column;
  const auto store = [&](auto own_zero, auto* codes) {
    AddedCodes own = added;
    if (added.addends) {
      own.addends += block.column;
      requantize_and_add_rows(sums, of, own, own_zero, codes, ldy);
    } else {
      requantize_rows(sums, of, own_zero, codes, ldy);
    }
  };
  if (is_signed)
    store(static_cast<int8_t>(zero), reinterpret_cast<int8_t*>(to));
  else
    store(static_cast<uint8_t>(zero), to);
}

void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* column_bias,
                     FinishSums finish) {
  if (a.lanes <= 0 || b.lanes <= 0) return;
  constexpr int64_t columns_at_once = 4;  // of panels: enough for rows of vectors
  const Product product(a, b, nullptr, column_bias);
  const int height = a.kernels->tile_rows, width = a.kernels->tile_columns;
  const int64_t ld = columns_at_once * width;
  const auto share_codes = [&](const auto& codes) {
    share_panels(pool, *a.kernels, a.panels(), b.panels(), a.panel_bytes(),
                 [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                   codes.multiply(row, row_end, column, column_end);
                 });
  };
  if (CodesOfPanels::can_make(product, a, finish)) return share_codes(CodesOfPanels(product, a, b, *finish.codes()));
  if (CodesOfTiles::can_make(product, a, finish))
    return share_codes(CodesOfTiles(product, a, b, column_bias, *finish.codes()));
  const bool in_turn = a.kernels->all_tiles && a.lanes > 1 && a.k > 0;
  const auto multiply_in_turn = [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
    FinishedTiles tiles(product, *a.kernels, row, row_end, column, column_end, finish);
    a.kernels->all_tiles(product.groups(), tiles);
    tiles.finish_rest();
  };
  const auto multiply = [&](int64_t row, int64_t column, int64_t columns, int32_t* sums) {
    const int64_t rows = product.rows_of(row), count = product.columns_of(column, columns);
    if (finish.stored() && rows == height && count == columns * width)
      return product.tiles(row, column, columns, finish.stored()->at(row * height, column * width),
                           finish.stored()->ldc);
    product.tiles(row, column, columns, sums, ld);
    finish({row * height, column * width, rows, count, sums, ld});
  };
  share_panels(pool, *a.kernels, a.panels(), b.panels(), a.panel_bytes(),
               [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                 if (in_turn) return multiply_in_turn(row, row_end, column, column_end);
                 if (a.lanes == 1) return multiply_row(product, column, column_end, finish);
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
    const bool with_sums = !are_zero(right);
    if (right.kernels->all_tiles && m > 1 && right.k > 0 && !with_sums && can_stay(a)) {
      panels_.unpacked = static_cast<const uint8_t*>(a.data);
      panels_.unpacked_ld = a.ld;
    }
    pack_panels(pool, panels_, a, zeros, with_sums);
  }
  const BytePanels& panels() const { return panels_; }

 private:
  // Whether rows are codes as they are, in whole groups of steps that cross no cache lines.
  bool can_stay(const ByteMatrix& a) const {
    const auto bytes = static_cast<uintptr_t>(panels_.group());
    return !a.transposed && panels_.flip(a.is_signed) == 0 && static_cast<uintptr_t>(panels_.k) % bytes == 0 &&
           static_cast<uintptr_t>(a.ld) % bytes == 0 && reinterpret_cast<uintptr_t>(a.data) % bytes == 0;
  }

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
