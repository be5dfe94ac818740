// Products of a tile, in registers; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <cstring>

#include "kernels/gemm_any/tile.h"

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

  template <int Count>
  static void multiply_rows(int64_t k, const T* a, const T* b, int64_t ldb, bool adds, T* c, int64_t ldc) {
    V sums[Count][Vectors];
#pragma GCC unroll 12
    for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sums[i][j] = adds ? load(c + i * ldc + j * lanes) : V{};
    for (; k > 0; --k, a += Rows, b += ldb) {
      V right[Vectors];
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) right[j] = load(b + j * lanes);
#pragma GCC unroll 12
      for (int i = 0; i < Count; ++i) {
        const V left = a[i] - V{};  // adding zero would change -0
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sums[i][j] = multiply_add(left, right[j], sums[i][j]);
      }
    }
#pragma GCC unroll 12
    for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) std::memcpy(c + i * ldc + j * lanes, &sums[i][j], sizeof(V));
  }

  // With the fewest rows that are enough, of all, a half, a quarter, …
  template <int Count>
  static void multiply(int64_t count, int64_t k, const T* a, const T* b, int64_t ldb, bool adds, T* c, int64_t ldc) {
    if constexpr (Count > 1) {
      if (count <= Count / 2) return multiply<Count / 2>(count, k, a, b, ldb, adds, c, ldc);
    }
    multiply_rows<Count>(k, a, b, ldb, adds, c, ldc);
  }

  static constexpr AnyTile<T> tile() { return {Rows, columns, pack<Rows>, pack<columns>, multiply<Rows>}; }
};

}  // namespace tenon::kernels
