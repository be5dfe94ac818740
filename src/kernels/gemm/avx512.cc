#include "kernels/simd/avx512.h"

#include "kernels/gemm/tile_kernel.h"
#include "kernels/simd/plain_address.h"

namespace tenon::kernels {
namespace {

// A packed panel of R rows, and rows where they are: for these a pointer each would be more than there are registers.
// Some numbers are read by the products themselves, if there are several: an instruction less for each, which counts
// where two threads share a core, and a load more. Those with an address that is more than a register and a number do
// not save one.
template <int R>
struct PackedRows {
  static constexpr bool products_read(int row) { return row % 7 < 4; }
  const float* from;
  explicit PackedRows(const float* a) : from(a) {}
  const float* at(int row, int step) const { return from + step * R + row; }
  void go_on(int steps) { from += steps * R; }
};
template <int R>
struct RowsInPlace {
  static constexpr int pointers = (R + 2) / 3;
  static constexpr bool products_read(int row) { return row % 3 == 0; }
  const float* from[pointers];
  int64_t stride;
  explicit RowsInPlace(const GemmPanel& a) : stride(a.stride) {
#pragma GCC unroll 8
    for (int i = 0; i < pointers; ++i) from[i] = a.data + 3 * i * stride;
  }
  const float* at(int row, int step) const { return from[row / 3] + row % 3 * stride + step; }
  void go_on(int steps) {
#pragma GCC unroll 8
    for (int i = 0; i < pointers; ++i) from[i] += steps;
  }
};

// The same, of which each number that was read is stored in its place of a packed panel.
template <int R>
struct RowsToPack : RowsInPlace<R> {
  static constexpr bool products_read(int) { return false; }
  float* to;
  explicit RowsToPack(const GemmRowsToPack& a) : RowsInPlace<R>(a.rows), to(a.packed) {}
  void keep(int row, int step, Simd<Avx512>::F value) {
    asm volatile("vmovss %x1, %0" : "=m"(to[step * R + row]) : "v"(value));
  }
  void go_on(int steps) {
    RowsInPlace<R>::go_on(steps);
    to += steps * R;
  }
};

// R rows of each step, which lies where it is.
template <int R>
struct StepsInPlace {
  static constexpr bool products_read(int row) { return PackedRows<R>::products_read(row); }
  const float* from;
  int64_t stride;
  explicit StepsInPlace(const GemmPanel& a) : from(a.data), stride(a.stride) {}
  const float* at(int row, int) const { return from + row; }
  void end_step() { from = plain_address(from + stride); }
  void go_on(int) {}
};

struct Tile : BroadcastTile<Avx512, 14, 2> {
  static constexpr bool multiplies_rows_in_place = true, reads_many_columns_in_place = true;
  static constexpr bool packs_rows_meanwhile = true;
  static constexpr int64_t most_steps_in_place = 512;

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply_and_fetch(int64_t k, const float* a, B b, const GemmTile& t,
                                                        F (&acc)[R][V]) {
    if constexpr (B::is_beside)
      multiply_beside<R, V>(k, PackedRows<R>(a), b, t, acc);
    else
      multiply_rows<R, V>(k, PackedRows<R>(a), b, t, acc);
  }
  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply_and_fetch(int64_t k, const GemmPanel& a, B b, const GemmTile& t,
                                                        F (&acc)[R][V]) {
    multiply_rows<R, V>(k, RowsInPlace<R>(a), b, t, acc);
  }
  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply_and_fetch(int64_t k, const GemmRowsToPack& a, B b, const GemmTile& t,
                                                        F (&acc)[R][V]) {
    multiply_rows<R, V>(k, RowsToPack<R>(a), b, t, acc);
  }

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply_and_fetch(int64_t k, const GemmSteps& a, B b, const GemmTile& t,
                                                        F (&acc)[R][V]) {
    multiply_rows<R, V>(k, StepsInPlace<R>(a.steps), b, t, acc);
  }

  static void pack_rows(const float* a, int64_t ld, int64_t k, float* out) {
    transpose_rows<rows, rows>(a, ld, k, out);
  }
  static void pack_transposed_columns(const float* b, int64_t ld, int64_t k, float* out) {
    constexpr int columns = vectors * S::width;
#pragma GCC unroll 2
    for (int j = 0; j < columns; j += S::width) transpose_rows<S::width, columns>(b + j * ld, ld, k, out + j);
  }

 private:
  using F = Avx512::F;
  static constexpr int steps_at_once = 4;
  static constexpr int64_t columns_beside = 48;  // from a tile's columns to those that are fetched meanwhile

  // out[p * Step + i] = from[i * ld + p] for i < Count, p < k. Sixteen steps at a time: pairs of rows, then pairs of
  // pairs, and so on.
  template <int Count, int Step>
  static void transpose_rows(const float* from, int64_t ld, int64_t k, float* out) {
    constexpr auto lanes = static_cast<__mmask16>((1 << Count) - 1);
    int64_t p = 0;
    for (; p + 16 <= k; p += 16, out += 16 * Step) {
      __m512 row[16], pair[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) row[i] = i < Count ? _mm512_loadu_ps(from + i * ld + p) : _mm512_setzero_ps();
#pragma GCC unroll 8
      for (int i = 0; i < 16; i += 2) {
        pair[i] = _mm512_unpacklo_ps(row[i], row[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps(row[i], row[i + 1]);
      }
      // Of rows 4 * i to 4 * i + 3, steps j, j + 4, j + 8 and j + 12.
      __m512 four[4][4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          const __m512d low = _mm512_castps_pd(pair[4 * i + j]), high = _mm512_castps_pd(pair[4 * i + 2 + j]);
          four[i][2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
          four[i][2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
      }
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m512 a02 = _mm512_shuffle_f32x4(four[0][j], four[1][j], 0x88),
                     a13 = _mm512_shuffle_f32x4(four[0][j], four[1][j], 0xdd),
                     b02 = _mm512_shuffle_f32x4(four[2][j], four[3][j], 0x88),
                     b13 = _mm512_shuffle_f32x4(four[2][j], four[3][j], 0xdd);
        _mm512_mask_storeu_ps(out + j * Step, lanes, _mm512_shuffle_f32x4(a02, b02, 0x88));
        _mm512_mask_storeu_ps(out + (j + 4) * Step, lanes, _mm512_shuffle_f32x4(a13, b13, 0x88));
        _mm512_mask_storeu_ps(out + (j + 8) * Step, lanes, _mm512_shuffle_f32x4(a02, b02, 0xdd));
        _mm512_mask_storeu_ps(out + (j + 12) * Step, lanes, _mm512_shuffle_f32x4(a13, b13, 0xdd));
      }
    }
    for (; p < k; ++p, out += Step)
      for (int i = 0; i < Count; ++i) out[i] = from[i * ld + p];
  }

  // Lines of C are fetched one by one before they are needed: all at once they would be more than a core can wait for
  // beside those that it reads, and early on they would not stay in the first cache.
  template <int R, int V, class Left, class B>
  [[gnu::always_inline]] static void multiply_rows(int64_t k, Left left, B b, const GemmTile& t, F (&acc)[R][V]) {
    const std::byte* ahead = t.ahead;
    const auto fetch_ahead = [&](int) {
      if constexpr (!B::has_ahead) return;
      prefetch<1>(ahead);
      if constexpr (R < 4 && V > 1) prefetch<1>(ahead + sizeof(F));
      ahead = plain_address(ahead + t.ahead_step);
    };
    constexpr int steps_of_lines = B::has_ahead ? R * (V + 1) * steps_at_once : 0;
    for (; k >= steps_of_lines + steps_at_once; k -= steps_at_once)
      multiply_steps<steps_at_once>(left, b, acc, fetch_ahead);
    if constexpr (B::has_ahead) {
      const float *row = t.c, *line = row;
      for (; k >= steps_at_once; k -= steps_at_once) {
        multiply_steps<steps_at_once>(left, b, acc, [&](int step) {
          if (step == 0) prefetch<0>(line);
          fetch_ahead(step);
        });
        line += S::width;
        if (line == row + V * S::width)
          --line;
        else if (line > row + V * S::width)
          line = row += t.ldc;
      }
    }
    for (; k > 0; --k) multiply_steps<1>(left, b, acc, fetch_ahead);
  }

  // What tiles to the right write is fetched too, a row in each step: the processor sees that too late by itself. Rows
  // that there are no steps for are fetched before.
  template <int R, int V, class Left, class B>
  [[gnu::always_inline]] static void multiply_beside(int64_t k, Left left, B b, const GemmTile& t, F (&acc)[R][V]) {
    const float* beside = t.c + columns_beside;
    const float* last = beside + ((k < R ? k : R) - 1) * t.ldc;
    for (int64_t i = k; i < R; ++i) {
      prefetch<0>(beside + i * t.ldc);
      if constexpr (V > 1) prefetch<0>(beside + i * t.ldc + S::width);
    }
    const auto fetch = [&](int) {
      prefetch<0>(beside);
      if constexpr (V > 1) prefetch<0>(beside + S::width);
      go_on(beside, t.ldc, last);
    };
    for (; k >= steps_at_once; k -= steps_at_once) multiply_steps<steps_at_once>(left, b, acc, fetch);
    for (; k > 0; --k) multiply_steps<1>(left, b, acc, fetch);
  }

  // Where that leaves fewer loads than products.
  template <int R, int V, class Left>
  static constexpr bool products_read(int row) {
    return Left::products_read(row) && (V == 1 || R >= half_rows);
  }

  // These statements stay in their order: steps that mix would need more registers than there are.
  template <int Steps, int R, int V, class Left, class B, class Fetch>
  [[gnu::always_inline]] static void multiply_steps(Left& left, B& b, F (&acc)[R][V], Fetch fetch) {
#pragma GCC unroll 4
    for (int step = 0; step < Steps; ++step) {
      fetch(step);
      const float* b_row = b.take();
      if constexpr (B::has_ahead) b.next = plain_address(b.next);
      F row[V];
#pragma GCC unroll 2
      for (int j = 0; j < V; ++j) load(row[j], b_row + j * S::width);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        if (products_read<R, V, Left>(i)) {
#pragma GCC unroll 2
          for (int j = 0; j < V; ++j) multiply_add_number(acc[i][j], left.at(i, step), row[j]);
          continue;
        }
        F value;
        broadcast(value, left.at(i, step));
        if constexpr (requires { left.keep(i, step, value); }) left.keep(i, step, value);
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) multiply_add(acc[i][j], value, row[j]);
      }
      if constexpr (requires { left.end_step(); }) left.end_step();
    }
    left.go_on(Steps);
  }

  template <int Cache>
  static void prefetch(const void* p) {
    if constexpr (Cache == 0)
      asm volatile("prefetcht0 %a0" : : "p"(p));
    else
      asm volatile("prefetcht1 %a0" : : "p"(p));
  }
  // Not beyond the last one. An expression would become a branch.
  static void go_on(const float*& at, int64_t step, const float* last) {
    asm volatile("lea (%0, %1, 4), %0\n\tcmp %2, %0\n\tcmova %2, %0" : "+r"(at) : "r"(step), "r"(last) : "cc");
  }
  static void load(F& value, const float* p) {
    asm volatile("vmovups %1, %0" : "=v"(value) : "m"(*reinterpret_cast<const float(*)[S::width]>(p)));
  }
  static void broadcast(F& value, const float* p) { asm volatile("vbroadcastss %1, %0" : "=v"(value) : "m"(*p)); }
  static void multiply_add_number(F& sum, const float* a, F b) {
    asm volatile("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*a), "v"(b));
  }
  static void multiply_add(F& sum, F a, F b) { asm volatile("vfmadd231ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b)); }
};

}  // namespace

constexpr GemmKernels gemm_kernels_avx512 = GemmTileKernels<Tile>::table();

}  // namespace tenon::kernels
