// How the inner loops of convolutions in blocked layout end: what is in registers goes to memory.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Stores acc[i][j] at y + place(i, j). The residual is laid out as y is; null adds nothing. Tile is a struct of
// internal linkage: S, what vectors can do, and Number.
template <class Tile, int A, int B, class F, class Place>
[[gnu::always_inline]] inline void finish(F (&acc)[A][B], const typename Tile::Number* residual, bool clamp, float lo,
                                          float hi, typename Tile::Number* y, Place place) {
  using S = typename Tile::S;
  if (residual) {
#pragma GCC unroll 16
    for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < B; ++j) acc[i][j] += S::load(residual + place(i, j));
    }
  }
  if (clamp && hi < std::numeric_limits<float>::infinity()) {
    const F low = S::set(lo), high = S::set(hi);
#pragma GCC unroll 16
    for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < B; ++j) acc[i][j] = S::clamp(acc[i][j], low, high);
    }
  } else if (clamp) {
    const F low = S::set(lo);
#pragma GCC unroll 16
    for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < B; ++j) acc[i][j] = S::at_least(low, acc[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < B; ++j) S::store(y + place(i, j), acc[i][j]);
  }
}

}  // namespace tenon::kernels
