// The micro-kernels, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <cstring>
#include <utility>

#include "kernels/gemm/tile.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: Arch, rows, vectors (columns in vectors) and multiply, which adds the product
// of k steps to what `acc` holds and brings `ahead` near.
template <class Tile>
struct GemmTileKernels {
  using S = Simd<typename Tile::Arch>;
  using F = typename S::F;
  static constexpr int rows = Tile::rows;
  static constexpr int vectors = Tile::vectors;
  static constexpr int columns = vectors * S::width;

  template <int R>
  using Accumulators = F[R][vectors];

  // f(accumulator, row, column) for each of them.
  template <int R, class Function>
  static void each(Accumulators<R>& acc, Function f) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) f(acc[i][j], i, j * S::width);
    }
  }

  // A tile of all columns, whose addend has columns side by side or one for all.
  template <int R>
  static void finish(Accumulators<R>& acc, const GemmTile& t) {
    if (t.alpha != 1.0f) each<R>(acc, [&](F& v, int, int) { v *= t.alpha; });
    if (t.accumulate) {
      each<R>(acc, [&](F& v, int i, int j) { v += S::load(t.c + i * t.ldc + j); });
    } else if (t.addend && t.addend_column_stride) {
      each<R>(acc, [beta = S::set(t.beta), &t](F& v, int i, int j) {
        v = S::fma(beta, S::load(t.addend + i * t.addend_row_stride + j), v);
      });
    } else if (t.addend) {
      each<R>(acc, [&](F& v, int i, int) { v += S::set(t.beta * t.addend[i * t.addend_row_stride]); });
    }
    if (t.residual) each<R>(acc, [&](F& v, int i, int j) { v += S::load(t.residual + i * t.ldc + j); });
    if (t.clamp) {
      each<R>(acc, [lo = S::set(t.lo), hi = S::set(t.hi)](F& v, int, int) { v = S::min(hi, S::max(lo, v)); });
    }
    each<R>(acc, [&](F& v, int i, int j) { S::store(t.c + i * t.ldc + j, v); });
  }

  // Any tile, by way of copies that have all columns.
  template <int R>
  [[gnu::noinline]] static void finish_part(Accumulators<R>& acc, const GemmTile& t) {
    float c[R][columns] = {}, addend[R][columns] = {}, residual[R][columns] = {};
    GemmTile whole = t;
    for (int i = 0; i < R; ++i) {
      for (int j = 0; j < t.columns; ++j) {
        if (t.accumulate)
          c[i][j] = t.c[i * t.ldc + j];
        else if (t.addend)
          addend[i][j] = t.addend[i * t.addend_row_stride + j * t.addend_column_stride];
        if (t.residual) residual[i][j] = t.residual[i * t.ldc + j];
      }
    }
    whole.c = c[0];
    whole.ldc = columns;
    if (t.addend) whole.addend = addend[0];
    whole.addend_row_stride = columns;
    whole.addend_column_stride = 1;
    if (t.residual) whole.residual = residual[0];
    finish<R>(acc, whole);
    for (int i = 0; i < R; ++i) std::memcpy(t.c + i * t.ldc, c[i], static_cast<size_t>(t.columns) * sizeof(float));
  }

  template <int R>
  static void run(int64_t k, const float* a, const float* b, int64_t b_stride, const GemmTile& t) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      constexpr int line = 16;
#pragma GCC unroll 4
      for (int j = 0; j < columns; j += line) __builtin_prefetch(t.c + i * t.ldc + j, 1);
    }
    F acc[R][vectors] = {};
    Tile::template multiply<R>(k, a, b, b_stride, t.ahead, t.ahead_step, acc);
    if (t.columns == columns && (t.addend_column_stride <= 1 || t.accumulate)) return finish<R>(acc, t);
    F copy[R][vectors];
    each<R>(acc, [&](F& v, int i, int j) { copy[i][j / S::width] = v; });
    finish_part<R>(copy, t);
  }

  static void add_4_rows(const float* x, const float* b, int64_t ldb, float* y, int64_t n) {
    constexpr int step = S::width < 16 ? 16 : S::width;  // a cache line
    const F x0 = S::set(x[0]), x1 = S::set(x[1]), x2 = S::set(x[2]), x3 = S::set(x[3]);
    int64_t j = 0;
    for (; j + step <= n; j += step) {
      bring_near(b + 4 * ldb + j, ldb);
#pragma GCC unroll 4
      for (int64_t i = j; i < j + step; i += S::width) {
        F v = S::load(y + i);
        v = S::fma(x0, S::load(b + i), v);
        v = S::fma(x1, S::load(b + ldb + i), v);
        v = S::fma(x2, S::load(b + 2 * ldb + i), v);
        v = S::fma(x3, S::load(b + 3 * ldb + i), v);
        S::store(y + i, v);
      }
    }
    for (; j < n; ++j) {
      y[j] += x[0] * b[j] + x[1] * b[ldb + j] + x[2] * b[2 * ldb + j] + x[3] * b[3 * ldb + j];
    }
  }

  static void dot_4_rows(const float* x, const float* b, int64_t ldb, float* y, int64_t k) {
    constexpr int64_t floats_ahead = 512;
    F acc[4][2] = {};
    int64_t p = 0;
    for (; p + 2 * S::width <= k; p += 2 * S::width) {
      bring_near(b + p + floats_ahead, ldb);
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

  // What is read soon of 4 rows. It need not be there.
  static void bring_near(const float* b, int64_t ldb) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_prefetch(b + i * ldb, 0, 2);
  }

  template <int... R>
  static constexpr GemmKernels table(std::integer_sequence<int, R...>) {
    return {Tile::Arch::isa, rows, columns, {nullptr, &run<R + 1>...}, add_4_rows, dot_4_rows};
  }
  static constexpr GemmKernels table() { return table(std::make_integer_sequence<int, rows>{}); }
};

// What Tile has for instruction sets that broadcast from memory.
template <class A, int Rows, int Vectors>
struct BroadcastTile {
  using Arch = A;
  using S = Simd<Arch>;
  static constexpr int rows = Rows;
  static constexpr int vectors = Vectors;
  static constexpr int cache_line = 64;

  template <int R, class F>
  static void multiply(int64_t k, const float* a, const float* b, int64_t b_stride, const std::byte* ahead,
                       int64_t ahead_step, F (&acc)[R][Vectors]) {
    for (int64_t p = 0; p < k; ++p, a += R, b += b_stride, ahead += ahead_step) {
      __builtin_prefetch(ahead, 0, 2);
      if constexpr (R < 4 && Vectors * sizeof(F) > cache_line) __builtin_prefetch(ahead + cache_line, 0, 2);
      F row[Vectors];
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) row[j] = S::load(b + j * S::width);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const F value = S::set(a[i]);
#pragma GCC unroll 8
        for (int j = 0; j < Vectors; ++j) acc[i][j] = S::fma(value, row[j], acc[i][j]);
      }
    }
  }
};

}  // namespace tenon::kernels
