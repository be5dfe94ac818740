// The micro-kernels, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <cstring>
#include <utility>

#include "kernels/gemm/tile.h"
#include "kernels/simd/plain_address.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// The rows of a right panel, one after the other; has_ahead: what comes after them is brought near meanwhile;
// is_beside: tiles follow to the right.
struct EvenRows {
  static constexpr bool has_ahead = true, is_beside = false;
  const float* next;
  int64_t stride;
  const float* take() {
    const float* row = next;
    next += stride;
    return row;
  }
};
// Where they are few, so that they and what is written are near anyway.
struct NearRows : EvenRows {
  static constexpr bool has_ahead = false;
};
struct RowsAt {
  static constexpr bool has_ahead = false, is_beside = true;
  const float* data;
  const int64_t* next;
  const float* take() { return data + *next++; }
};

// Rows of A where they are, and where they are packed to.
struct GemmRowsToPack {
  GemmPanel rows;
  float* packed;
};

// Steps of A where they are.
struct GemmSteps {
  GemmPanel steps;
};

// Tile is a struct of internal linkage: Arch, rows, vectors (columns in vectors) and multiply, which adds the product
// of k steps to what `acc` holds and brings `ahead` near; where multiplies_rows_in_place, of rows that are GemmPanel
// too, and where most_steps_in_place is not 0, of GemmSteps. It may have multiply_unpacked, which sets `acc` to the
// product of sides that are not packed.
template <class Tile>
struct GemmTileKernels {
  using S = Simd<typename Tile::Arch>;
  using F = typename S::F;
  static constexpr int rows = Tile::rows;
  static constexpr int vectors = Tile::vectors;
  static constexpr int narrow_vectors = vectors > 1 ? vectors - 1 : 1;

  template <int R, int V>
  using Accumulators = F[R][V];

  // f(accumulator, row, column) for each of them.
  template <int R, int V, class Function>
  static void each(Accumulators<R, V>& acc, Function f) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) f(acc[i][j], i, j * S::width);
    }
  }

  // What is loaded and stored of the vector of column j: all of it, or what a tile of fewer columns has.
  struct AllColumns {
    static F load(const float* p, int) { return S::load(p); }
    static void store(float* p, int, F v) { S::store(p, v); }
  };
  struct FirstColumns {
    int64_t columns;
    F load(const float* p, int j) const { return columns >= j + S::width ? S::load(p) : S::load_part(p, rest(j)); }
    void store(float* p, int j, F v) const { columns >= j + S::width ? S::store(p, v) : S::store_part(p, v, rest(j)); }
    int64_t rest(int j) const { return columns > j ? columns - j : 0; }
  };

  // Whether there is no addend, or one that has columns side by side or one for all.
  static bool has_plain_addend(const GemmTile& t) { return t.addend_column_stride <= 1 || t.accumulate || !t.addend; }

  // A tile with such an addend.
  template <int R, int V, class Columns>
  [[gnu::always_inline]] static void finish(Accumulators<R, V>& acc, const GemmTile& t, Columns columns) {
    if (t.alpha != 1.0f) each<R, V>(acc, [&](F& v, int, int) { v *= t.alpha; });
    if (t.accumulate) {
      each<R, V>(acc, [&](F& v, int i, int j) { v += columns.load(t.c + i * t.ldc + j, j); });
    } else if (t.addend && t.addend_column_stride) {
      each<R, V>(acc, [beta = S::set(t.beta), &t, columns](F& v, int i, int j) {
        v = S::fma(beta, columns.load(t.addend + i * t.addend_row_stride + j, j), v);
      });
    } else if (t.addend) {
      each<R, V>(acc, [beta = S::set(t.beta), &t](F& v, int i, int) {
        v = S::fma(beta, S::set(t.addend[i * t.addend_row_stride]), v);
      });
    }
    if (t.residual) each<R, V>(acc, [&](F& v, int i, int j) { v += columns.load(t.residual + i * t.ldc + j, j); });
    if (t.clamp) {
      each<R, V>(acc, [lo = S::set(t.lo), hi = S::set(t.hi)](F& v, int, int) { v = S::clamp(v, lo, hi); });
    }
    each<R, V>(acc, [&](F& v, int i, int j) { columns.store(t.c + i * t.ldc + j, j, v); });
  }

  // to[i][j] = from[i * row_stride + j * column_stride] for j < count, zero after them.
  template <int R, int Columns>
  static void take(const float* from, int64_t row_stride, int64_t column_stride, int count, float (&to)[R][Columns]) {
    for (int i = 0; i < R; ++i, from += row_stride) {
      for (int j = 0; j < count; ++j) to[i][j] = from[j * column_stride];
      for (int j = count; j < Columns; ++j) to[i][j] = 0;
    }
  }

  // Any tile. Addends that are not side by side are copied.
  template <int R, int V>
  [[gnu::noinline]] static void finish_part(Accumulators<R, V>& acc, const GemmTile& t) {
    const FirstColumns columns{t.columns};
    if (has_plain_addend(t)) return finish<R, V>(acc, t, columns);
    constexpr int all = V * S::width;
    float addend[R][all];
    take(t.addend, t.addend_row_stride, t.addend_column_stride, t.columns, addend);
    GemmTile tile = t;
    tile.addend = addend[0];
    tile.addend_row_stride = all;
    tile.addend_column_stride = 1;
    finish<R, V>(acc, tile, columns);
  }

  // What another function is given is a copy, so that sums stay in registers.
  template <int R, int V>
  [[gnu::always_inline]] static void finish_any(Accumulators<R, V>& acc, const GemmTile& t) {
    if (t.columns == V * S::width && has_plain_addend(t)) return finish<R, V>(acc, t, AllColumns{});
    if constexpr (V == 1) {
      if (has_plain_addend(t)) return finish<R, V>(acc, t, FirstColumns{t.columns});
    }
    F copy[R][V];
    each<R, V>(acc, [&](F& v, int i, int j) { copy[i][j / S::width] = v; });
    finish_part<R, V>(copy, t);
  }

  // The same for one row, without the vectors that have no columns.
  template <int V>
  [[gnu::always_inline]] static void finish_row(Accumulators<1, V>& acc, const GemmTile& t) {
    if constexpr (V > 1) {
      if (t.columns <= (V - 1) * S::width) {
        F fewer[1][V - 1];
        each<1, V - 1>(fewer, [&](F& v, int, int j) { v = acc[0][j / S::width]; });
        return finish_row(fewer, t);
      }
    }
    finish_any<1, V>(acc, t);
  }

  // A is a pointer to packed rows, GemmPanel, GemmRowsToPack or GemmSteps.
  template <int R, int V, class A, class B>
  [[gnu::always_inline]] static void run_tile(int64_t k, A a, B b, const GemmTile& t) {
    F acc[R][V] = {};
    if constexpr (requires { Tile::template multiply_and_fetch<R, V>(k, a, b, t, acc); }) {
      Tile::template multiply_and_fetch<R, V>(k, a, b, t, acc);
    } else {
      // Of tiles side by side the processor sees by itself what they are going to write.
#pragma GCC unroll 16
      for (int i = 0; B::has_ahead && i < R; ++i) {
        constexpr int line = 16;
#pragma GCC unroll 4
        for (int j = 0; j < V * S::width; j += line) __builtin_prefetch(t.c + i * t.ldc + j, 1);
      }
      Tile::template multiply<R, V>(k, a, b, t.ahead, t.ahead_step, acc);
    }
    // Addresses from before it are not to keep registers.
    finish_any<R, V>(acc, *plain_address(&t));
  }

  // A tile of few columns leaves out the vectors that have none.
  template <int R, int V>
  [[gnu::noinline]] static void run(int64_t k, const float* a, const GemmPanel& b, const GemmTile& t) {
    if constexpr (V > 1) {
      if (t.columns <= (V - 1) * S::width) return run<R, V - 1>(k, a, b, t);
    }
    run_tile<R, V>(k, a, EvenRows{b.data, b.stride}, t);
  }

  template <int R, int V>
  [[gnu::noinline]] static void run_in_place(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& t) {
    if constexpr (V > 1) {
      if (t.columns <= (V - 1) * S::width) return run_in_place<R, V - 1>(k, a, b, t);
    }
    if constexpr (Tile::reads_many_columns_in_place)
      run_tile<R, V>(k, a, EvenRows{b.data, b.stride}, t);
    else
      run_tile<R, V>(k, a, NearRows{{b.data, b.stride}}, t);
  }

  static constexpr GemmRowsKernel in_place_kernel() {
    if constexpr (Tile::multiplies_rows_in_place)
      return &run_in_place<rows, vectors>;
    else
      return nullptr;
  }
  template <int R>
  static constexpr GemmRowsKernel half_in_place_kernel() {
    if constexpr (Tile::multiplies_rows_in_place && Tile::reads_many_columns_in_place && rows > half_rows)
      return &run_in_place<R, vectors>;
    else
      return nullptr;
  }

  template <int V>
  [[gnu::noinline]] static void run_and_pack(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& t,
                                             float* packed) {
    if constexpr (V > 1) {
      if (t.columns <= (V - 1) * S::width) return run_and_pack<V - 1>(k, a, b, t, packed);
    }
    run_tile<rows, V>(k, GemmRowsToPack{a, packed}, EvenRows{b.data, b.stride}, t);
  }

  template <int R, int V>
  [[gnu::noinline]] static void run_steps(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& t) {
    if constexpr (V > 1) {
      if (t.columns <= (V - 1) * S::width) return run_steps<R, V - 1>(k, a, b, t);
    }
    run_tile<R, V>(k, GemmSteps{a}, EvenRows{b.data, b.stride}, t);
  }

  template <int R>
  static constexpr GemmStepsKernel steps_kernel() {
    if constexpr (Tile::most_steps_in_place > 0)
      return &run_steps<R, vectors>;
    else
      return nullptr;
  }

  static constexpr GemmRowsToPackKernel packing_kernel() {
    if constexpr (Tile::packs_rows_meanwhile)
      return &run_and_pack<vectors>;
    else
      return nullptr;
  }

  template <int R, int V>
  static void run_tiles(int64_t k, const float* a, const float* b, const int64_t* offsets, int64_t tiles,
                        const GemmTile& t) {
    constexpr int columns = V * S::width;
    GemmTile tile = t;
    for (int64_t i = 0; i < tiles; ++i, b += columns) {
      tile.columns = i + 1 < tiles ? columns : t.columns;
      run_tile<R, V>(k, a, RowsAt{b, offsets}, tile);
      tile.c += columns;
      if (tile.addend) tile.addend += columns * tile.addend_column_stride;
      if (tile.residual) tile.residual += columns;
    }
  }

  template <int V>
  [[gnu::noinline]] static void run_unpacked(int64_t k, const GemmPanel& a, const GemmPanel& b, const GemmTile& t) {
    F acc[unpacked_rows][V];
    Tile::template multiply_unpacked<V>(k, a, b, acc);
    finish_any<unpacked_rows, V>(acc, *plain_address(&t));
  }

  template <int V>
  static constexpr GemmRowsKernel unpacked_kernel() {
    if constexpr (requires { &Tile::template multiply_unpacked<V, F>; })
      return &run_unpacked<V>;
    else
      return nullptr;
  }

  // A few rows at a time, so that long rows are read in order.
  static void pack_columns(const float* b, int64_t ld, int64_t panels, int64_t k, float* out) {
    constexpr int64_t rows_at_once = 8, columns = vectors * S::width;
    for (int64_t first = 0; first < k; first += rows_at_once) {
      const int64_t last = first + rows_at_once < k ? first + rows_at_once : k;
      for (int64_t panel = 0; panel < panels; ++panel) {
        float* to = out + (panel * k + first) * columns;
        const float* from = b + first * ld + panel * columns;
        for (int64_t p = first; p < last; ++p, to += columns, from += ld) {
#pragma GCC unroll 8
          for (int j = 0; j < columns; j += S::width) S::store(to + j, S::load(from + j));
        }
      }
    }
  }

  static constexpr auto rows_packer() -> void (*)(const float*, int64_t, int64_t, float*) {
    if constexpr (requires { &Tile::pack_rows; })
      return &Tile::pack_rows;
    else
      return nullptr;
  }

  static constexpr auto transposed_columns_packer() -> void (*)(const float*, int64_t, int64_t, float*) {
    if constexpr (requires { &Tile::pack_transposed_columns; })
      return &Tile::pack_transposed_columns;
    else
      return nullptr;
  }

  static void interleave(const float* a, const float* b, int64_t n, float* y) {
    constexpr auto lanes = std::make_integer_sequence<int, S::width>{};
    const auto interleave_vector = [&](int64_t i) {
      const F first = S::load(a + i), second = S::load(b + i);
      S::store(y + 2 * i, interleaved<0>(first, second, lanes));
      S::store(y + 2 * i + S::width, interleaved<S::width / 2>(first, second, lanes));
    };
    int64_t i = 0;
    for (; i + S::width <= n; i += S::width) interleave_vector(i);
    // The last vector may overlap the one before.
    if (i < n && n > S::width) return interleave_vector(n - S::width);
    for (; i < n; ++i) {
      y[2 * i] = a[i];
      y[2 * i + 1] = b[i];
    }
  }
  template <int Begin, int... Lane>
  static F interleaved(F a, F b, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(a, b, (Begin + Lane / 2 + Lane % 2 * S::width)...);
  }

  // As many as keep the multiply-add units busy.
  static constexpr int panels_at_once = (8 + vectors - 1) / vectors;

  template <int Panels>
  static void run_row_of_panels(int64_t k, const float* a, const float* b, int64_t panel_step, const GemmTile& t) {
    constexpr int columns = vectors * S::width;
    F acc[Panels][1][vectors] = {};
    // Some steps of one panel before those of the next: they read whole cache lines.
    const auto add = [&](auto steps) {
#pragma GCC unroll 8
      for (int i = 0; i < Panels; ++i) {
        for (int q = 0; q < steps; ++q) {
          const F factor = S::set(a[q]);
#pragma GCC unroll 8
          for (int j = 0; j < vectors; ++j)
            acc[i][0][j] = S::fma(factor, S::load(b + i * panel_step + q * columns + j * S::width), acc[i][0][j]);
        }
      }
      a += steps;
      b += steps * columns;
    };
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) add(std::integral_constant<int, 4>{});
    for (; p < k; ++p) add(std::integral_constant<int, 1>{});
    GemmTile tile = t;
#pragma GCC unroll 8
    for (int i = 0; i < Panels; ++i) {
      tile.columns = i + 1 < Panels ? columns : t.columns;
      finish_row(acc[i], tile);
      tile.c += columns;
      if (tile.addend) tile.addend += columns * tile.addend_column_stride;
      if (tile.residual) tile.residual += columns;
    }
  }

  // Each column is added up in the same way, wherever in a row it is.
  template <int R>
  static void add_4_rows(const float* x, int64_t ldx, const float* b, int64_t ldb, float* y, int64_t ldy, int64_t n) {
    constexpr int step = S::width < 16 ? 16 : S::width;  // a cache line
    F factor[R][4];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) factor[r][i] = S::set(x[r * ldx + i]);
    }
    const auto add = [&](int64_t j, auto load, auto store) {
      const F row[4] = {load(b + j), load(b + ldb + j), load(b + 2 * ldb + j), load(b + 3 * ldb + j)};
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        F v = load(y + r * ldy + j);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) v = S::fma(factor[r][i], row[i], v);
        store(y + r * ldy + j, v);
      }
    };
    int64_t j = 0;
    for (; j + step <= n; j += step) {
      bring_near(b + 4 * ldb + j, ldb);
#pragma GCC unroll 4
      for (int64_t i = j; i < j + step; i += S::width) add(i, S::load, S::store);
    }
    for (; j < n; j += S::width) {
      const int64_t count = n - j < S::width ? n - j : S::width;
      add(
          j, [=](const float* p) { return S::load_part(p, count); },
          [=](float* p, F v) { S::store_part(p, v, count); });
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

  template <int... R, int... P>
  static constexpr GemmKernels table(std::integer_sequence<int, R...>, std::integer_sequence<int, P...>) {
    return {Tile::Arch::isa,
            rows,
            vectors * S::width,
            narrow_vectors * S::width,
            {nullptr, &run<R + 1, vectors>...},
            in_place_kernel(),
            {half_in_place_kernel<half_rows>(), half_in_place_kernel<half_rows - 1>()},
            Tile::reads_many_columns_in_place,
            packing_kernel(),
            Tile::most_steps_in_place,
            {nullptr, steps_kernel<R + 1>()...},
            {nullptr, &run_tiles<R + 1, vectors>...},
            {nullptr, &run_tiles<R + 1, narrow_vectors>...},
            &pack_columns,
            transposed_columns_packer(),
            rows_packer(),
            &interleave,
            panels_at_once,
            {nullptr, &run_row_of_panels<P + 1>...},
            {nullptr, &add_4_rows<1>, &add_4_rows<2>, &add_4_rows<3>, &add_4_rows<4>},
            dot_4_rows,
            {nullptr, unpacked_kernel<1>(), unpacked_kernel<2>(), unpacked_kernel<3>(), unpacked_kernel<4>()},
            S::width};
  }
  static constexpr GemmKernels table() {
    return table(std::make_integer_sequence<int, rows>{}, std::make_integer_sequence<int, panels_at_once>{});
  }
};

// What Tile has for instruction sets that broadcast from memory.
template <class A, int Rows, int Vectors>
struct BroadcastTile {
  using Arch = A;
  using S = Simd<Arch>;
  static constexpr int rows = Rows;
  static constexpr int vectors = Vectors;
  static constexpr int cache_line = 64;
  static constexpr bool multiplies_rows_in_place = false, reads_many_columns_in_place = false;
  static constexpr bool packs_rows_meanwhile = false;
  static constexpr int64_t most_steps_in_place = 128;

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply(int64_t k, const float* a, B b, const std::byte* ahead,
                                              int64_t ahead_step, F (&acc)[R][V]) {
    multiply(k, GemmSteps{{a, R}}, b, ahead, ahead_step, acc);
  }

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply(int64_t k, const GemmSteps& left, B b, const std::byte* ahead,
                                              int64_t ahead_step, F (&acc)[R][V]) {
    const float* a = left.steps.data;
    for (int64_t p = 0; p < k; ++p, a += left.steps.stride, ahead += ahead_step) {
      const float* b_row = b.take();
      if constexpr (B::has_ahead) __builtin_prefetch(ahead, 0, 2);
      if constexpr (B::has_ahead && R < 4 && V * sizeof(F) > cache_line) __builtin_prefetch(ahead + cache_line, 0, 2);
      F row[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) row[j] = S::load(b_row + j * S::width);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const F value = S::set(a[i]);
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) acc[i][j] = S::fma(value, row[j], acc[i][j]);
      }
    }
  }
};

}  // namespace tenon::kernels
