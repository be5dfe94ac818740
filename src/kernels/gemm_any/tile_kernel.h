// Products of a tile, in registers; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <cstring>

#include "kernels/gemm_any/tile.h"
#include "kernels/simd/plain_address.h"

namespace tenon::kernels {

// V is a vector of T, or T itself where the instruction set does not multiply vectors of it. Of every step, `Vectors`
// of the right side are loaded and Rows numbers of the left side repeated.
template <class Arch, class T, class V, int Rows, int Vectors>
struct AnyTileKernel {
  static constexpr int vector_bytes = sizeof(V), lanes = vector_bytes / sizeof(T), columns = Vectors * lanes;

  static V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  template <int Width>
  static void pack(const AnyLines<T>& lines, int64_t first, int64_t step, int64_t steps, T* to) {
    const int64_t stride = lines.stride, count = lines.count - first;
    const T* from = lines.data + first * stride + step * lines.step;
    for (; steps > 0; --steps, from += lines.step, to += Width) {
      if (count >= Width && stride == 1)
        std::memcpy(to, from, Width * sizeof(T));
      else if (count >= Width)
        for (int i = 0; i < Width; ++i) to[i] = from[i * stride];
      else
        for (int i = 0; i < Width; ++i) to[i] = i < count ? from[i * stride] : T{};
    }
  }

  // Floating-point numbers are rounded once where the instruction set can.
  static V multiply_add(V a, V b, V c) {
    if constexpr (requires { Arch::fma(a, b, c); })
      return Arch::fma(a, b, c);
    else
      return a * b + c;
  }

  // Rows of a packed panel, and rows where they are: of these the compiler would keep a pointer each, for which there
  // are too few registers.
  struct PackedRows {
    const T* from;
    T take(int row) const { return from[row]; }
    void end_step() { from += Rows; }
  };
  struct RowsInPlace {
    static constexpr int groups = (Rows + 2) / 3;
    const T* from[groups];
    int64_t lda;
    RowsInPlace(const T* a, int64_t step) : lda(step) {
      for (int i = 0; i < groups; ++i) from[i] = a + 3 * i * step;
    }
    T take(int row) const { return from[row / 3][row % 3 * lda]; }
    void end_step() {
#pragma GCC unroll 4
      for (const T*& row : from) row = plain_address(row + 1);
    }
  };

  template <int Count, class Left>
  [[gnu::always_inline]] static void multiply_rows(int64_t k, Left a, const T* b, int64_t ldb, bool adds, T* c,
                                                   int64_t ldc) {
    V sums[Count][Vectors];
#pragma GCC unroll 12
    for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sums[i][j] = adds ? load(c + i * ldc + j * lanes) : V{};
    for (; k > 0; --k, a.end_step(), b += ldb) {
      V right[Vectors];
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) right[j] = load(b + j * lanes);
#pragma GCC unroll 12
      for (int i = 0; i < Count; ++i) {
        const V left = a.take(i) - V{};  // adding zero would change -0
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sums[i][j] = multiply_add(left, right[j], sums[i][j]);
      }
    }
#pragma GCC unroll 12
    for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) std::memcpy(c + i * ldc + j * lanes, &sums[i][j], sizeof(V));
  }

  // With the fewest rows that are enough, of all, two thirds, two thirds of these, …
  template <int Count>
  static void multiply(int64_t count, int64_t k, const T* a, const T* b, int64_t ldb, bool adds, T* c, int64_t ldc) {
    if constexpr (Count > 1) {
      constexpr int fewer = Count * 2 / 3;
      if (count <= fewer) return multiply<fewer>(count, k, a, b, ldb, adds, c, ldc);
    }
    multiply_rows<Count>(k, PackedRows{a}, b, ldb, adds, c, ldc);
  }

  static void multiply_in_place(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, bool adds, T* c,
                                int64_t ldc) {
    multiply_rows<Rows>(k, RowsInPlace(a, lda), b, ldb, adds, c, ldc);
  }

  static constexpr AnyTile<T> tile(bool reads_in_place = false) {
    return {Rows, columns, pack<Rows>, pack<columns>, multiply<Rows>, reads_in_place ? multiply_in_place : nullptr};
  }
};

}  // namespace tenon::kernels
