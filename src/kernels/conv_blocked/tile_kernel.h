// The inner loops, written once; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/conv_blocked/depthwise_row_kernel.h"
#include "kernels/conv_blocked/planes_kernel.h"
#include "kernels/conv_blocked/tile.h"
#include "kernels/simd/plain_address.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: Arch, registers, vectors (of a block), pixels, two_pixels, orders_statements
// (itself, so that compilers need not), dw_pixels, row_lines, least_plain_depth, load, add_product, clamp (to bounds
// that are not NaN; NaN stays NaN) and multiply_add or multiply_add_steps.
template <class Tile>
struct ConvBlockedTiles {
  using S = Simd<typename Tile::Arch>;
  using F = typename S::F;
  static constexpr int vectors = Tile::vectors;
  static constexpr int block = vectors * S::width;

  // Where vectors of pixels go.
  static auto places(int64_t pixel_step) {
    return [=](int i, int j) { return i * pixel_step + j * S::width; };
  }

  template <int P, int Lanes, int Blocks>
  static void run(const BlockedTile& t) {
    if (t.next_weights < t.next_end)
      run_tiles<P, Lanes, Blocks, true>(t);
    else
      run_tiles<P, Lanes, Blocks, false>(t);
  }

  template <int P, int Lanes, int Blocks, bool Fetches>
  [[gnu::always_inline]] static void run_tiles(BlockedTile tile) {
    for (int64_t i = 0; i < tile.tiles; ++i) {
      // Several of them in one function cost some compilers registers.
      if constexpr (Tile::orders_statements)
        run_tile<P, Lanes, Blocks, Fetches>(tile);
      else
        run_tile_apart<P, Lanes, Blocks, Fetches>(tile);
      tile.pixels += P;
      tile.y += P * block;
      if (tile.residual) tile.residual += P * block;
      tile.next_weights = std::min(tile.next_weights + tile.next_part, tile.next_end);
    }
  }

  template <int P, int Lanes, int Blocks, bool Fetches>
  [[gnu::noinline]] static void run_tile_apart(const BlockedTile& t) {
    run_tile<P, Lanes, Blocks, Fetches>(t);
  }

  template <int P, int Lanes, int Blocks, bool Fetches>
  [[gnu::always_inline]] static void run_tile(const BlockedTile& t) {
    F acc[P][vectors * Blocks];
    const float* x[P];
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) x[i] = t.x + t.pixels[i];
#pragma GCC unroll 2
    for (int b = 0; b < Blocks; ++b) {
      const float* y = plain_address(t.y + b * t.y_step);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j)
          acc[i][b * vectors + j] =
              S::load(t.start ? t.start + (b * vectors + j) * S::width : y + i * block + j * S::width);
      }
    }
    const float *next = t.next_weights, *end = std::min(next + t.next_part, t.next_end);
    const auto fetch_line = [&] {
      __builtin_prefetch(next, 0, 2);
      if constexpr (Blocks == 2) __builtin_prefetch(next + t.weight_step, 0, 2);
      next += 16;
    };
    // Mostly it is one line.
    const int64_t more_lines = t.next_lines - 1;
    const auto fetch_next = [&] {
      if (!Fetches || next >= end) return;
      fetch_line();
      for (int64_t line = 0; line < more_lines; ++line) fetch_line();
    };
    multiply_add<P, Lanes, Fetches>(t, x, fetch_next, acc);
#pragma GCC unroll 2
    for (int b = 0; b < Blocks; ++b) {
      F sums[P][vectors];
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j) sums[i][j] = acc[i][b * vectors + j];
      }
      const float* residual = t.residual ? plain_address(t.residual + b * t.y_step) : nullptr;
      finish<Tile>(sums, residual, t.clamp, t.lo, t.hi, plain_address(t.y + b * t.y_step), places(block));
    }
  }

  // Whether one block of output channels is worked on after the other, and a tile fetches as much as it reads.
  template <int P, int Lanes, bool Fetches>
  static constexpr bool may_read_in_order = Fetches&& Lanes == block&& P > Tile::two_pixels;
  template <int Lanes>
  static bool reads_in_order(const BlockedTile& t) {
    return t.next_lines >= Lanes && t.next_weights == t.weights + t.step_count * Lanes * block;
  }

  // All steps of a tile.
  template <int P, int Lanes, bool Fetches, int V, class Fetch>
  [[gnu::always_inline]] static void multiply_add(const BlockedTile& t, const float* const (&x)[P], Fetch fetch_next,
                                                  F (&acc)[P][V]) {
    const float* w = t.weights;
    if constexpr (requires { Tile::template multiply_add_even<P, Lanes>(acc, x[0], w, t.weight_step, 0); }) {
      const int64_t step = P > 1 ? t.pixels[1] - t.pixels[0] : 0;
      bool is_even = true;
      for (int i = 2; i < P; ++i) is_even &= t.pixels[i] - t.pixels[i - 1] == step;
      const auto run_even = [&](auto distance) {
        for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block) {
          fetch_next();
          Tile::template multiply_add_even<P, Lanes>(acc, x[0] + t.steps[s], w, t.weight_step, distance);
        }
      };
      if constexpr (may_read_in_order<P, Lanes, Fetches>) {
        // Then a line is fetched for each that is read.
        constexpr int64_t floats_ahead = 4 * Lanes * block;
        if (is_even && step == block && reads_in_order<Lanes>(t)) {
          for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block)
            Tile::template multiply_add_even<P, Lanes, floats_ahead>(acc, x[0] + t.steps[s], w, t.weight_step,
                                                                     std::integral_constant<int64_t, block>{});
          return;
        }
      }
      if (is_even) {
        // A distance that compilers know needs no registers.
        if (step == block)
          run_even(std::integral_constant<int64_t, block>{});
        else
          run_even(step);
        return;
      }
    }
    if constexpr (requires {
                    Tile::template multiply_add_steps<P, Lanes>(acc, x, t.steps, t.step_count, w, t.weight_step,
                                                                fetch_next);
                  }) {
      Tile::template multiply_add_steps<P, Lanes>(acc, x, t.steps, t.step_count, w, t.weight_step, fetch_next);
    } else {
      for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block) {
#pragma GCC unroll 16
        for (int line = 0; line < Lanes * block; line += 16) __builtin_prefetch(w + 4 * Lanes * block + line);
        fetch_next();
        Tile::template multiply_add<P, Lanes>(acc, x, t.steps[s], w, t.weight_step);
      }
    }
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
    finish<Tile>(acc, t.residual, true, t.lo, t.hi, t.y, places(t.y_step));
  }

  template <int... P, int... T, int... D>
  static constexpr ConvBlockedKernels table(std::integer_sequence<int, P...>, std::integer_sequence<int, T...>,
                                            std::integer_sequence<int, D...>) {
    return {Tile::Arch::isa,
            block,
            Tile::pixels,
            Tile::two_pixels,
            Tile::dw_pixels,
            {nullptr, &run<P + 1, block, 1>...},
            {nullptr, &run<P + 1, 1, 1>...},
            {nullptr, &run<T + 1, block, 2>...},
            {nullptr, &run<T + 1, 1, 2>...},
            {nullptr, &depthwise<D + 1>...},
            DepthwiseRowTiles<Tile>::table(),
            &BlocksToPlanesKernel<Tile>::run,
            Tile::least_plain_depth};
  }
  static constexpr ConvBlockedKernels table() {
    return table(std::make_integer_sequence<int, Tile::pixels>{}, std::make_integer_sequence<int, Tile::two_pixels>{},
                 std::make_integer_sequence<int, Tile::dw_pixels>{});
  }
};

// What Tile has for instruction sets that broadcast from memory; a block is a vector or more.
template <class Arch, int Vectors>
struct BroadcastPixels {
  using S = Simd<Arch>;

  template <class F>
  static void load(F& v, const float* p) {
    v = S::load(p);
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    sum = S::fma(a, b, sum);
  }

  template <int P, int Lanes, class F, int V>
  static void multiply_add(F (&acc)[P][V], const float* const (&x)[P], int64_t at, const float* w,
                           int64_t weight_step) {
#pragma GCC unroll 2
    for (int lane = 0; lane < Lanes; ++lane, w += Vectors * S::width) {
      F weight[V];
      load_weights(weight, w, weight_step);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) add_products(acc[i], x[i][at + lane], weight);
    }
  }

  // The same for pixels that are `step` apart: few pointers do, where one for each would be more than there are
  // registers. Weights that lie so many floats ahead are fetched, if any.
  template <int P, int Lanes, int64_t Ahead = 0, class F, int V, class Step>
  [[gnu::always_inline]] static void multiply_add_even(F (&acc)[P][V], const float* x, const float* w,
                                                       int64_t weight_step, Step step) {
    constexpr int at_once = Lanes % 4 == 0 ? 4 : 1;
    for (int lane = 0; lane < Lanes; lane += at_once, x += at_once, w += at_once * Vectors * S::width) {
      const float* bases[(P + 2) / 3];
#pragma GCC unroll 8
      for (int k = 0; k < (P + 2) / 3; ++k) bases[k] = x + 3 * k * step;
#pragma GCC unroll 4
      for (int l = 0; l < at_once; ++l) {
        if constexpr (Ahead > 0) __builtin_prefetch(w + l * Vectors * S::width + Ahead);
        F weight[V];
        load_weights(weight, w + l * Vectors * S::width, weight_step);
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) add_products(acc[i], bases[i / 3][i % 3 * step + l], weight);
      }
    }
  }

 private:
  template <class F, int V>
  static void load_weights(F (&weight)[V], const float* w, int64_t weight_step) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) weight[j] = S::load(w + j / Vectors * weight_step + j % Vectors * S::width);
  }
  template <class F, int V>
  static void add_products(F (&acc)[V], float x, const F (&weight)[V]) {
    const F value = S::set(x);
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) acc[j] = S::fma(value, weight[j], acc[j]);
  }
};

}  // namespace tenon::kernels
