#include "kernels/gemm_bf16/gemm_bf16.h"

#include <algorithm>
#include <type_traits>

#include "base/cpu_features.h"
#include "base/rounding.h"
#include "kernels/gemm/driver.h"
#include "kernels/gemm/multiplication.h"
#include "kernels/gemm_bf16/bf16.h"
#include "kernels/scratch.h"

namespace tenon::kernels {
namespace {

// Of the left side, rounded at once.
constexpr int64_t most_left_numbers = int64_t{1} << 20;
// Steps of k at once: a panel of each side then is not much more than the first cache holds.
constexpr int64_t most_k_at_once = 1024;

int64_t whole_groups(const Bf16Kernels& kernels, int64_t k) {
  return divide_up(k, kernels.left_k_group) * kernels.left_k_group;
}

// Some rows of a product, whose left side is packed.
struct Product {
  const Bf16Kernels& kernels;
  const PackedBf16Matrix& b;
  const uint16_t* left;
  int64_t first_row, rows, k_steps;
  float* c;
  int64_t ldc;
  const GemmEpilogue& e;

  int64_t row_panels() const { return divide_up(rows, kernels.tile_rows); }
  int64_t column_panels() const { return divide_up(b.columns(), kernels.tile_columns); }

  void multiply(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    const int64_t parts = divide_up(k_steps, most_k_at_once);
    const int64_t step = whole_groups(kernels, divide_up(k_steps, parts));
    for (int64_t k = 0; k < k_steps; k += step) {
      const int64_t count = std::min(step, k_steps - k);
      for (int64_t j = column; j < column_end; ++j) {
        for (int64_t i = row; i < row_end; ++i) {
          if (j + 1 < column_end) bring_near(j + 1, k, count, i - row, row_end - row);
          multiply_tile(i, j, k, count);
        }
      }
    }
    if (e.activation) activate(row, row_end, column, column_end);
  }

  // Part `index` of `parts` of what is needed of a right panel.
  void bring_near(int64_t column_panel, int64_t k, int64_t count, int64_t index, int64_t parts) const {
    constexpr int64_t line = 32;
    const uint16_t* from = b.panel(column_panel) + k * kernels.tile_columns;
    const int64_t numbers = count * kernels.tile_columns;
    for (int64_t i = index * numbers / parts; i < (index + 1) * numbers / parts; i += line)
      __builtin_prefetch(from + i, 0, 2);
  }

  void multiply_tile(int64_t row_panel, int64_t column_panel, int64_t k, int64_t count) const {
    const int64_t row = row_panel * kernels.tile_rows, column = column_panel * kernels.tile_columns;
    const int64_t height = std::min<int64_t>(kernels.tile_rows, rows - row);
    const int64_t width = std::min<int64_t>(kernels.tile_columns, b.columns() - column);
    alignas(64) float sums[most_bf16_tile_rows * most_bf16_tile_columns];
    const Bf16Kernels::Multiply run = height <= kernels.tile_rows / 2 ? kernels.half_of_rows : kernels.all_rows;
    run(count, left + row * k_steps + k * kernels.tile_rows, b.panel(column_panel) + k * kernels.tile_columns, sums);
    const bool is_first = k == 0, is_last = k + count == k_steps;
    for (int64_t i = 0; i < height; ++i) {
      const float* from = sums + i * kernels.tile_columns;
      // The compiler makes vectors of what is as wide as whole tiles.
      if (width == 32)
        finish(from, first_row + row + i, column, std::integral_constant<int64_t, 32>{}, is_first, is_last);
      else if (width == 12)
        finish(from, first_row + row + i, column, std::integral_constant<int64_t, 12>{}, is_first, is_last);
      else
        finish(from, first_row + row + i, column, width, is_first, is_last);
    }
  }

  // Adds a row of a tile to what is there of earlier steps, and what follows the product to that of the last ones.
  template <class Width>
  void finish(const float* __restrict sums, int64_t row, int64_t column, Width width, bool is_first,
              bool is_last) const {
    float* to = c + row * ldc + column;
    const float alpha = e.alpha, beta = e.beta;
    const float* addend = e.addend ? e.addend + row * e.addend_row_stride + column * e.addend_column_stride : nullptr;
    if (!is_first) {
      for (int64_t j = 0; j < width; ++j) to[j] += alpha * sums[j];
    } else if (addend && e.addend_column_stride == 1) {
      for (int64_t j = 0; j < width; ++j) to[j] = alpha * sums[j] + beta * addend[j];
    } else if (addend) {
      for (int64_t j = 0; j < width; ++j) to[j] = alpha * sums[j] + beta * addend[j * e.addend_column_stride];
    } else {
      for (int64_t j = 0; j < width; ++j) to[j] = alpha * sums[j];
    }
    if (!is_last) return;
    if (e.residual) {
      const float* residual = e.residual + row * ldc + column;
      for (int64_t j = 0; j < width; ++j) to[j] += residual[j];
    }
    if (!has_limits(e)) return;
    const float lo = e.lo, hi = e.hi;
    for (int64_t j = 0; j < width; ++j) {
      const float x = to[j] < lo ? lo : to[j];
      to[j] = x > hi ? hi : x;
    }
  }

  void activate(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    const int64_t first = column * kernels.tile_columns;
    const int64_t count = std::min(column_end * kernels.tile_columns, b.columns()) - first;
    for (int64_t i = row * kernels.tile_rows; i < std::min(row_end * kernels.tile_rows, rows); ++i) {
      float* to = c + (first_row + i) * ldc + first;
      e.activation(to, to, count);
    }
  }
};

void share(ThreadPool* pool, int64_t count, FunctionRef<void(int64_t, int64_t)> body) {
  if (pool)
    pool->parallel_for(count, 1, body);
  else
    body(0, count);
}

}  // namespace

std::vector<const Bf16Kernels*> available_bf16_kernels() {
  std::vector<const Bf16Kernels*> result = {&bf16_kernels_portable};
#if defined(__aarch64__)
  if (best_isa() == Isa::neon && cpu_features().bf16) result.push_back(&bf16_kernels_neon_bf16);
#elif defined(__x86_64__)
  if (best_isa() == Isa::avx512 && cpu_features().avx512_bf16 && cpu_features().amx)
    result.push_back(&bf16_kernels_amx);
#endif
  return result;
}

const Bf16Kernels* fast_bf16_kernels() {
  const Bf16Kernels* best = available_bf16_kernels().back();
  return best == &bf16_kernels_portable ? nullptr : best;
}

PackedBf16Matrix::PackedBf16Matrix(ThreadPool& pool, int64_t rows, int64_t columns, GemmMatrix matrix,
                                   const Bf16Kernels& kernels, PackedStorage& storage)
    : kernels_(&kernels), k_(rows), columns_(columns), steps_(whole_groups(kernels, rows)) {
  const int64_t width = kernels.tile_columns, group = kernels.k_group, panels = divide_up(columns, width);
  const int64_t row_step = matrix.transposed ? 1 : matrix.ld, column_step = matrix.transposed ? matrix.ld : 1;
  buffer_ = storage.get(static_cast<size_t>(panels * steps_ * width) * sizeof(uint16_t), [&](void* memory) {
    pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        uint16_t* to = static_cast<uint16_t*>(memory) + panel * steps_ * width;
        for (int64_t k = 0; k < steps_; ++k) {
          for (int64_t j = 0; j < width; ++j) {
            const int64_t column = panel * width + j;
            to[(k / group * width + j) * group + k % group] =
                k < k_ && column < columns_ ? to_bf16(matrix.data[k * row_step + column * column_step]) : uint16_t{0};
          }
        }
      }
    });
  });
}

void gemm_bf16(ThreadPool& pool, int64_t m, GemmMatrix a, const PackedBf16Matrix& b, float* c, int64_t ldc,
               const GemmEpilogue& epilogue) {
  if (m <= 0 || b.columns() <= 0 || b.rows() <= 0) return;
  const Bf16Kernels& kernels = b.kernels();
  const int64_t k = b.rows(), steps = whole_groups(kernels, k), height = kernels.tile_rows;
  ThreadPool* shared =
      pool_for_flops(pool, 2.0 * static_cast<double>(m) * static_cast<double>(b.columns()) * static_cast<double>(k));
  const int64_t most_rows = std::max<int64_t>(1, most_left_numbers / (steps * height)) * height;
  const Scratch scratch(static_cast<size_t>(divide_up(std::min(m, most_rows), height) * height * steps) *
                        sizeof(uint16_t));
  auto* left = scratch.as<uint16_t>();
  for (int64_t first = 0; first < m; first += most_rows) {
    const int64_t rows = std::min(most_rows, m - first);
    share(shared, divide_up(rows, height), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        kernels.pack_rows(a.data + (first + panel * height) * a.ld, a.ld, std::min(height, rows - panel * height), k,
                          left + panel * height * steps);
      }
    });
    const Product product{kernels, b, left, first, rows, steps, c, ldc, epilogue};
    share_panels(shared, kernels, product.row_panels(), product.column_panels(), steps * height * 2,
                 [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
                   product.multiply(row, row_end, column, column_end);
                 });
  }
}

}  // namespace tenon::kernels
