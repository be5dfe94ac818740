// The transforms, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
//
// A tile of size m is interpolated at m + 1 points and infinity: 0, ±1 for 2; 0, ±√½, ±√2 for 4, which round less than
// whole numbers. Rows and columns are transformed alike, so that each transform is one of a line,
// done twice.
#pragma once

#include "kernels/simd/simd.h"
#include "kernels/winograd/transform.h"

namespace tenon::kernels {

template <class S>
struct WinogradLine {
  using F = typename S::F;
  static constexpr float sqrt_half = 0.70710678f, sqrt_two = 1.41421356f;
  static F add(F a, float times, F b) { return S::fma(b, S::set(times), a); }  // a + times * b

  static void input(const F (&d)[4], F (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  static void output(const F (&m)[4], F (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
  }

  static void input(const F (&d)[6], F (&v)[6]) {
    const F even1 = add(d[4], -2, d[2]), odd1 = add(d[3], -2, d[1]);
    const F even2 = add(d[4], -0.5f, d[2]), odd2 = add(d[3], -0.5f, d[1]);
    v[0] = add(d[0] + d[4], -2.5f, d[2]);
    v[1] = add(even1, sqrt_half, odd1);
    v[2] = add(even1, -sqrt_half, odd1);
    v[3] = add(even2, sqrt_two, odd2);
    v[4] = add(even2, -sqrt_two, odd2);
    v[5] = add(d[1] + d[5], -2.5f, d[3]);
  }
  static void output(const F (&m)[6], F (&y)[4]) {
    const F sum1 = m[1] + m[2], difference1 = (m[1] - m[2]) * sqrt_half;
    const F sum2 = m[3] + m[4], difference2 = (m[3] - m[4]) * sqrt_two;
    y[0] = m[0] + sum1 + sum2;
    y[1] = difference1 + difference2;
    y[2] = add(sum1 * 0.5f, 2, sum2);
    y[3] = add(add(m[5], 0.5f, difference1), 2, difference2);
  }
};

// A block is `Vectors` vectors of an Arch of internal linkage.
template <class Arch, int Vectors>
struct WinogradTransforms {
  using S = Simd<Arch>;
  using F = typename S::F;
  using Line = WinogradLine<S>;
  static constexpr int block = Vectors * S::width;

  template <int M>
  static void input(const WinogradInput& t) {
    constexpr int n = M + 2;
    for (int j = 0; j < Vectors; ++j) {
      const float* x = t.x + j * S::width;
      F rows[n][n];  // of the transform, by column of the tile
#pragma GCC unroll 6
      for (int column = 0; column < n; ++column) {
        F d[n];
#pragma GCC unroll 6
        for (int row = 0; row < n; ++row) d[row] = S::load(x + row * t.row_step + column * block);
        Line::input(d, rows[column]);
      }
      float* to = t.points + j * S::width;
#pragma GCC unroll 6
      for (int row = 0; row < n; ++row) {
        F d[n], v[n];
#pragma GCC unroll 6
        for (int column = 0; column < n; ++column) d[column] = rows[column][row];
        Line::input(d, v);
#pragma GCC unroll 6
        for (int column = 0; column < n; ++column, to += t.point_step) S::store(to, v[column]);
      }
    }
  }

  template <int M>
  static void output(const WinogradOutput& t) {
    constexpr int n = M + 2;
    const F lo = S::set(t.lo), hi = S::set(t.hi);
    for (int j = 0; j < Vectors; ++j) {
      const float* from = t.points + j * S::width;
      F rows[n][M];
#pragma GCC unroll 6
      for (int row = 0; row < n; ++row) {
        F m[n];
#pragma GCC unroll 6
        for (int column = 0; column < n; ++column, from += t.point_step) m[column] = S::load(from);
        Line::output(m, rows[row]);
      }
      const F bias = S::load(t.bias + j * S::width);
      float* y = t.y + j * S::width;
      const float* residual = t.residual ? t.residual + j * S::width : nullptr;
#pragma GCC unroll 6
      for (int column = 0; column < M; ++column) {
        F m[n], line[M];
#pragma GCC unroll 6
        for (int row = 0; row < n; ++row) m[row] = rows[row][column];
        Line::output(m, line);
        if (column >= t.columns) break;
        const int64_t at = column * t.column_step;
        if (t.rows == M && !residual) {
#pragma GCC unroll 6
          for (int row = 0; row < M; ++row) S::store(y + row * t.row_step + at, S::clamp(line[row] + bias, lo, hi));
          continue;
        }
        for (int row = 0; row < t.rows; ++row) {
          F v = line[row] + bias;
          if (residual) v += S::load(residual + row * t.row_step + at);
          S::store(y + row * t.row_step + at, S::clamp(v, lo, hi));
        }
      }
    }
  }

  static constexpr WinogradKernels table() {
    return {Arch::isa,
            block,
            {nullptr, nullptr, &input<2>, nullptr, &input<4>},
            {nullptr, nullptr, &output<2>, nullptr, &output<4>}};
  }
};

}  // namespace tenon::kernels
