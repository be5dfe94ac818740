// The inner loops, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <utility>

#include "kernels/conv_blocked/tile.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: Arch, vectors (of a block), pixels, dw_pixels and multiply_add.
template <class Tile>
struct ConvBlockedTiles {
  using S = Simd<typename Tile::Arch>;
  using F = typename S::F;
  static constexpr int vectors = Tile::vectors;
  static constexpr int block = vectors * S::width;

  template <int P>
  static void store(const F (&acc)[P][vectors], const float* residual, bool clamp, float lo, float hi, float* y,
                    int64_t y_step) {
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        const int64_t at = i * y_step + j * S::width;
        F v = acc[i][j];
        if (residual) v += S::load(residual + at);
        if (clamp) v = S::min(S::set(hi), S::max(S::set(lo), v));
        S::store(y + at, v);
      }
    }
  }

  template <int P, int Lanes>
  static void run(const BlockedTile& t) {
    F acc[P][vectors];
    const float* x[P];
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
      x[i] = t.x + t.pixels[i];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j)
        acc[i][j] = S::load(t.start ? t.start + j * S::width : t.y + i * block + j * S::width);
    }
    const float* w = t.weights;
    if constexpr (requires { Tile::template multiply_add_even<P, Lanes>(acc, x[0], w, 0); }) {
      const int64_t step = P > 1 ? t.pixels[1] - t.pixels[0] : 0;
      bool is_even = true;
      for (int i = 2; i < P; ++i) is_even &= t.pixels[i] - t.pixels[i - 1] == step;
      if (is_even) {
        for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block)
          Tile::template multiply_add_even<P, Lanes>(acc, x[0] + t.steps[s], w, step);
        return store(acc, t.residual, t.clamp, t.lo, t.hi, t.y, block);
      }
    }
    for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block) {
#pragma GCC unroll 16
      for (int line = 0; line < Lanes * block; line += 16) __builtin_prefetch(w + 4 * Lanes * block + line);
      Tile::template multiply_add<P, Lanes>(acc, x, t.steps[s], w);
    }
    store(acc, t.residual, t.clamp, t.lo, t.hi, t.y, block);
  }

  template <int P>
  static void depthwise(const DepthwiseTile& t) {
    F acc[P][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) acc[i][j] = S::load(t.start + j * S::width);
    }
    for (int64_t tap = 0; tap < t.taps; ++tap) {
      const float *x = t.x + (t.x_at + t.offsets[tap]), *w = t.weights + t.weight_offsets[tap];
      F weight[vectors];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) weight[j] = S::load(w + j * S::width);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i, x += t.x_step) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j) acc[i][j] = S::fma(S::load(x + j * S::width), weight[j], acc[i][j]);
      }
    }
    store(acc, t.residual, true, t.lo, t.hi, t.y, t.y_step);
  }

  template <int... P, int... D>
  static constexpr ConvBlockedKernels table(std::integer_sequence<int, P...>, std::integer_sequence<int, D...>) {
    return {Tile::Arch::isa,
            block,
            Tile::pixels,
            Tile::dw_pixels,
            {nullptr, &run<P + 1, block>...},
            {nullptr, &run<P + 1, 1>...},
            {nullptr, &depthwise<D + 1>...}};
  }
  static constexpr ConvBlockedKernels table() {
    return table(std::make_integer_sequence<int, Tile::pixels>{}, std::make_integer_sequence<int, Tile::dw_pixels>{});
  }
};

// multiply_add for instruction sets that broadcast from memory.
template <class Arch, int P, int Lanes, class F, int V>
inline void multiply_add_broadcast_pixels(F (&acc)[P][V], const float* const (&x)[P], int64_t at, const float* w) {
  using S = Simd<Arch>;
#pragma GCC unroll 2
  for (int lane = 0; lane < Lanes; ++lane, w += V * S::width) {
    F weight[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) weight[j] = S::load(w + j * S::width);
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
      const F value = S::set(x[i][at + lane]);
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[i][j] = S::fma(value, weight[j], acc[i][j]);
    }
  }
}

// The same for pixels that are `step` apart: few pointers do, where one for each would be more than there are
// registers.
template <class Arch, int P, int Lanes, class F, int V>
inline void multiply_add_even_pixels(F (&acc)[P][V], const float* x, const float* w, int64_t step) {
  using S = Simd<Arch>;
  constexpr int at_once = Lanes % 4 == 0 ? 4 : 1;
  for (int lane = 0; lane < Lanes; lane += at_once, x += at_once, w += at_once * V * S::width) {
    const float* bases[(P + 2) / 3];
#pragma GCC unroll 8
    for (int k = 0; k < (P + 2) / 3; ++k) bases[k] = x + 3 * k * step;
#pragma GCC unroll 4
    for (int l = 0; l < at_once; ++l) {
      F weight[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) weight[j] = S::load(w + (l * V + j) * S::width);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
        const F value = S::set(bases[i / 3][i % 3 * step + l]);
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) acc[i][j] = S::fma(value, weight[j], acc[i][j]);
      }
    }
  }
}

}  // namespace tenon::kernels
