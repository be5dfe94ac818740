// The micro-kernels, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <array>
#include <utility>

#include "kernels/gemm/tile.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: Arch, rows, vectors (columns in vectors) and multiply_add_row.
template <class Tile>
struct GemmTileKernels {
  using S = Simd<typename Tile::Arch>;
  using F = typename S::F;
  static constexpr int rows = Tile::rows;
  static constexpr int vectors = Tile::vectors;
  static constexpr int columns = vectors * S::width;

  static F finish(F product, const GemmTile& t, int i, int j) {
    F v = product * t.alpha;
    if (t.accumulate) {
      v += S::load(t.c + i * t.ldc + j);
    } else if (t.addend) {
      const float* addend = t.addend + i * t.addend_row_stride;
      const F added = t.addend_column_stride ? S::load(addend + j) : S::set(*addend);
      v = S::fma(S::set(t.beta), added, v);
    }
    if (t.residual) v += S::load(t.residual + i * t.ldc + j);
    if (t.clamp) v = S::min(S::set(t.hi), S::max(S::set(t.lo), v));
    return v;
  }

  static void finish_scalar(const float* product, const GemmTile& t) {
    for (int i = 0; i < t.rows; ++i) {
      for (int j = 0; j < t.columns; ++j) {
        float v = product[i * columns + j] * t.alpha;
        float& c = t.c[i * t.ldc + j];
        if (t.accumulate) {
          v += c;
        } else if (t.addend) {
          v += t.beta * t.addend[i * t.addend_row_stride + j * t.addend_column_stride];
        }
        if (t.residual) v += t.residual[i * t.ldc + j];
        if (t.clamp) {
          v = t.lo > v ? t.lo : v;
          v = t.hi < v ? t.hi : v;
        }
        c = v;
      }
    }
  }

  template <int R>
  static void run(int64_t k, const float* a, const float* b, int64_t b_stride, const GemmTile& tile) {
    F acc[R][vectors] = {};
    for (int64_t p = 0; p < k; ++p, a += rows, b += b_stride) {
      F row[vectors];
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) row[j] = S::load(b + j * S::width);
      Tile::template multiply_add<R>(acc, a, row);
    }
    const GemmTile t = tile;
    if (t.columns == columns && (t.addend_column_stride <= 1 || t.accumulate)) {
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        if (i >= t.rows) break;
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) {
          S::store(t.c + i * t.ldc + j * S::width, finish(acc[i][j], t, i, j * S::width));
        }
      }
      return;
    }
    float product[R * columns];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) S::store(product + i * columns + j * S::width, acc[i][j]);
    }
    finish_scalar(product, t);
  }

  static void add_4_rows(const float* x, const float* b, int64_t ldb, float* y, int64_t n) {
    const F x0 = S::set(x[0]), x1 = S::set(x[1]), x2 = S::set(x[2]), x3 = S::set(x[3]);
    int64_t j = 0;
    for (; j + S::width <= n; j += S::width) {
      F v = S::load(y + j);
      v = S::fma(x0, S::load(b + j), v);
      v = S::fma(x1, S::load(b + ldb + j), v);
      v = S::fma(x2, S::load(b + 2 * ldb + j), v);
      v = S::fma(x3, S::load(b + 3 * ldb + j), v);
      S::store(y + j, v);
    }
    for (; j < n; ++j) {
      y[j] += x[0] * b[j] + x[1] * b[ldb + j] + x[2] * b[2 * ldb + j] + x[3] * b[3 * ldb + j];
    }
  }

  static void dot_4_rows(const float* x, const float* b, int64_t ldb, float* y, int64_t k) {
    F acc[4][2] = {};
    int64_t p = 0;
    for (; p + 2 * S::width <= k; p += 2 * S::width) {
      const F x0 = S::load(x + p), x1 = S::load(x + p + S::width);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        acc[i][0] = S::fma(x0, S::load(b + i * ldb + p), acc[i][0]);
        acc[i][1] = S::fma(x1, S::load(b + i * ldb + p + S::width), acc[i][1]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      float total = S::sum(acc[i][0] + acc[i][1]);
      for (int64_t q = p; q < k; ++q) total += x[q] * b[i * ldb + q];
      y[i] = total;
    }
  }

  // The smallest of the instantiated heights that holds r rows.
  template <int R>
  static constexpr GemmTileKernel holding() {
    constexpr int height = R <= 1 ? 1 : R <= 2 ? 2 : R <= 4 ? 4 : R <= 8 && rows > 8 ? 8 : rows;
    return &run<(height < rows ? height : rows)>;
  }

  template <int... R>
  static constexpr GemmKernels table(std::integer_sequence<int, R...>) {
    return {Tile::Arch::isa, rows, columns, {nullptr, holding<R + 1>()...}, add_4_rows, dot_4_rows};
  }
  static constexpr GemmKernels table() { return table(std::make_integer_sequence<int, rows>{}); }
};

// multiply_add for instruction sets that broadcast from memory.
template <class Arch, int R, class F, int V>
inline void multiply_add_broadcast(F (&acc)[R][V], const float* a, const F (&row)[V]) {
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    const F value = Simd<Arch>::set(a[i]);
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) acc[i][j] = Simd<Arch>::fma(value, row[j], acc[i][j]);
  }
}

}  // namespace tenon::kernels
