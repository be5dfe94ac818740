// The inner loops, written once; neon.cc, neon_fp16.cc, avx2.cc, avx512.cc and portable.cc instantiate them.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/conv_blocked/depthwise_row_kernel.h"
#include "kernels/conv_blocked/planes_kernel.h"
#include "kernels/conv_blocked/tile.h"
#include "kernels/simd/plain_address.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

// Tile is a struct of internal linkage: isa, S (what vectors can do), Number (float, or uint16_t for half precision),
// registers, vectors (of a block), pixels, two_pixels, orders_statements (itself, so that compilers need not),
// dw_pixels, row_lines, least_plain_depth, load, add_product and multiply_add or multiply_add_steps. Half precision has
// most_products, a multiple of the block, and its S has low and high, the halves of a vector as floats, and narrow.
template <class Tile>
struct ConvBlockedTiles {
  using S = typename Tile::S;
  using Number = typename Tile::Number;
  using BlockedTile = TileOf<Number>;
  using F = typename S::F;
  static constexpr int vectors = Tile::vectors;
  static constexpr int block = vectors * S::width;
  static constexpr bool is_half = sizeof(Number) == 2;
  static constexpr int line = 64 / sizeof(Number);

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
      if constexpr (is_half)
        run_parts<P, Lanes, Blocks, Fetches>(tile);
      else if constexpr (Tile::orders_statements)
        run_tile<P, Lanes, Blocks, Fetches>(tile);
      else
        run_tile_apart<P, Lanes, Blocks, Fetches>(tile);
      tile.pixels += P;
      tile.y += P * block;
      if (tile.residual) tile.residual += P * block;
      if constexpr (is_half) tile.sums += P * tile.sums_step;
      tile.next_weights = std::min(tile.next_weights + tile.next_part, tile.next_end);
    }
  }

  // Half precision: some steps of a tile, whose sums are added to those before.
  struct Part : BlockedTile {
    Number* pair;                // the sums of one other part
    bool adds_pair, keeps_pair;  // keeps: they go there, and nowhere else
    bool adds_sums;              // `sums` hold something
  };

  // Sums of at most so many products, and as equally many as possible. Two of them are added up, and then in floats to
  // the others.
  template <int P, int Lanes, int Blocks, bool Fetches>
  [[gnu::always_inline]] static void run_parts(const BlockedTile& tile) {
    constexpr int64_t most = Tile::most_products / Lanes;
    const int64_t parts = std::max<int64_t>(1, (tile.step_count + most - 1) / most);
    const int64_t least = tile.step_count / parts, longer = tile.step_count % parts;
    alignas(64) Number pair[P * Blocks * block];
    Part part{tile, pair, false, false, !tile.start};
    for (int64_t i = 0; i < parts; ++i) {
      part.step_count = least + (i < longer ? 1 : 0);
      part.adds_pair = i % 2 == 1;
      part.keeps_pair = i % 2 == 0 && i + 1 < parts;
      part.keeps_sums = tile.keeps_sums || i + 1 < parts;
      run_tile<P, Lanes, Blocks, Fetches>(part);
      part.start = nullptr;
      part.adds_sums |= !part.keeps_pair;
      part.steps += part.step_count;
      part.weights += part.step_count * Lanes * block;
      const int64_t fetched = std::min(part.step_count * part.next_lines * line, part.next_part);
      part.next_weights += fetched;
      part.next_part -= fetched;
    }
  }

  template <int P, int Lanes, int Blocks, bool Fetches>
  static void run_tile_apart(const BlockedTile& t) {
    if constexpr (requires(F(&acc)[P][vectors * Blocks]) {
                    Tile::template multiply_add_even<P, Lanes>(acc, t.x, t.weights, t.weight_step, 0);
                  }) {
      // A distance that compilers know needs no registers.
      const int64_t step = P > 1 ? t.pixels[1] - t.pixels[0] : block;
      bool is_even = true;
      for (int i = 2; i < P; ++i) is_even &= t.pixels[i] - t.pixels[i - 1] == step;
      if (is_even && step == block)
        return run_even_tile<P, Lanes, Blocks, Fetches>(t, std::integral_constant<int64_t, block>{});
      if (is_even) return run_even_tile<P, Lanes, Blocks, Fetches>(t, step);
    }
    run_uneven_tile<P, Lanes, Blocks, Fetches>(t);
  }

  // Pixels that are `step` apart.
  template <int P, int Lanes, int Blocks, bool Fetches, class Step>
  [[gnu::noinline]] static void run_even_tile(const BlockedTile& t, Step step) {
    constexpr int V = vectors * Blocks;
    run_tile<P, Lanes, Blocks, Fetches>(t, [&](F(&acc)[P][V], auto fetch_next) {
      const Number *x = t.x + t.pixels[0], *w = t.weights;
      const int64_t *steps = t.steps, *end = steps + t.step_count;
      if constexpr (std::is_same_v<Step, std::integral_constant<int64_t, block>> &&
                    may_read_in_order<P, Lanes, Fetches>) {
        // Then a line is fetched for each that is read.
        constexpr int64_t floats_ahead = 4 * Lanes * block;
        if (reads_in_order<Lanes>(t)) {
          for (; steps < end; ++steps, w += Lanes * block)
            Tile::template multiply_add_even<P, Lanes, floats_ahead>(acc, x + *steps, w, t.weight_step, step);
          return;
        }
      }
      for (; steps < end; ++steps, w += Lanes * block) {
        fetch_next();
        Tile::template multiply_add_even<P, Lanes>(acc, x + *steps, w, t.weight_step, step);
      }
    });
  }

  template <int P, int Lanes, int Blocks, bool Fetches>
  [[gnu::noinline]] static void run_uneven_tile(const BlockedTile& t) {
    run_tile<P, Lanes, Blocks, Fetches>(t);
  }

  // T is BlockedTile or Part.
  template <int P, int Lanes, int Blocks, bool Fetches, class T>
  [[gnu::always_inline]] static void run_tile(const T& t) {
    run_tile<P, Lanes, Blocks, Fetches>(t, [&](F(&acc)[P][vectors * Blocks], auto fetch_next) {
      const Number* x[P];
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) x[i] = t.x + t.pixels[i];
      multiply_add<P, Lanes>(t, x, fetch_next, acc);
    });
  }

  // multiply(acc, fetch_next) adds the products of all steps.
  template <int P, int Lanes, int Blocks, bool Fetches, class T, class Multiply>
  [[gnu::always_inline]] static void run_tile(const T& t, Multiply multiply) {
    F acc[P][vectors * Blocks];
    const Number *next = t.next_weights, *end = std::min(next + t.next_part, t.next_end);
    const auto fetch_line = [&] {
      __builtin_prefetch(next, 0, 2);
      if constexpr (Blocks == 2) __builtin_prefetch(next + t.weight_step, 0, 2);
      next += line;
    };
    // Mostly it is one line.
    const int64_t more_lines = t.next_lines - 1;
    const auto fetch_next = [&] {
      if (!Fetches || next >= end) return;
      fetch_line();
      for (int64_t l = 0; l < more_lines; ++l) fetch_line();
    };
    start<P, Blocks>(t, acc);
    multiply(acc, fetch_next);
    if constexpr (is_half) {
      if (t.adds_pair) add_pair(t.pair, acc);
      if (t.keeps_pair) return keep_pair(acc, t.pair);
      if (t.sums) add_sums(t, acc);
      if (t.keeps_sums) return;
    }
    finish_tile<P, Blocks>(t, acc);
  }

  template <int P, int Blocks>
  [[gnu::always_inline]] static void start(const BlockedTile& t, F (&acc)[P][vectors * Blocks]) {
#pragma GCC unroll 2
    for (int b = 0; b < Blocks; ++b) {
      const Number* y = plain_address(t.y + b * t.y_step);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j) {
          if (t.start)
            acc[i][b * vectors + j] = S::load(t.start + (b * vectors + j) * S::width);
          else
            acc[i][b * vectors + j] = is_half ? F{} : S::load(y + i * block + j * S::width);
        }
      }
    }
  }

  template <int P, int Blocks>
  [[gnu::always_inline]] static void finish_tile(const BlockedTile& t, const F (&acc)[P][vectors * Blocks]) {
#pragma GCC unroll 2
    for (int b = 0; b < Blocks; ++b) {
      F sums[P][vectors];
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j) sums[i][j] = acc[i][b * vectors + j];
      }
      const Number* residual = t.residual ? plain_address(t.residual + b * t.y_step) : nullptr;
      finish<Tile>(sums, residual, t.clamp, t.lo, t.hi, plain_address(t.y + b * t.y_step), places(block));
    }
  }

  template <int P, int V>
  [[gnu::always_inline]] static void add_sums(const Part& t, F (&acc)[P][V]) {
    constexpr int half = S::width / 2;
    float* sums = plain_address(t.sums);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) {
        float* at = sums + (p * V + j) * S::width;
        auto low = S::low(acc[p][j]), high = S::high(acc[p][j]);
        if (t.adds_sums) low += S::load_floats(at), high += S::load_floats(at + half);
        if (t.keeps_sums)
          S::store_floats(at, low), S::store_floats(at + half, high);
        else
          acc[p][j] = S::narrow(low, high);
      }
    }
  }

  template <int P, int V>
  [[gnu::always_inline]] static void add_pair(const Number* pair, F (&acc)[P][V]) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[p][j] += S::load(pair + (p * V + j) * S::width);
    }
  }
  template <int P, int V>
  [[gnu::always_inline]] static void keep_pair(const F (&acc)[P][V], Number* pair) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) S::store(pair + (p * V + j) * S::width, acc[p][j]);
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
  template <int P, int Lanes, int V, class Fetch>
  [[gnu::always_inline]] static void multiply_add(const BlockedTile& t, const Number* const (&x)[P], Fetch fetch_next,
                                                  F (&acc)[P][V]) {
    const Number* w = t.weights;
    if constexpr (requires {
                    Tile::template multiply_add_steps<P, Lanes>(acc, x, t.steps, t.step_count, w, t.weight_step,
                                                                fetch_next);
                  }) {
      Tile::template multiply_add_steps<P, Lanes>(acc, x, t.steps, t.step_count, w, t.weight_step, fetch_next);
    } else {
      for (int64_t s = 0; s < t.step_count; ++s, w += Lanes * block) {
#pragma GCC unroll 16
        for (int at = 0; at < Lanes * block; at += line) __builtin_prefetch(w + 4 * Lanes * block + at);
        fetch_next();
        Tile::template multiply_add<P, Lanes>(acc, x, t.steps[s], w, t.weight_step);
      }
    }
  }

  template <int P>
  static void depthwise(const DepthwiseTileOf<Number>& t) {
    F acc[P][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) acc[i][j] = S::load(t.start + j * S::width);
    }
    for (int64_t tap = 0; tap < t.taps; ++tap) {
      const Number *x = t.x + (t.x_at + t.offsets[tap]), *w = t.weights + t.weight_offsets[tap];
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

  static constexpr auto to_planes() -> void (*)(const BlocksToPlanes&) {
    if constexpr (is_half)
      return nullptr;
    else
      return &BlocksToPlanesKernel<Tile>::run;
  }
  static constexpr int64_t most_products() {
    if constexpr (is_half)
      return 2 * Tile::most_products;
    else
      return 0;
  }

  template <int... P, int... T, int... D>
  static constexpr BlockedConvKernels<Number> table(std::integer_sequence<int, P...>, std::integer_sequence<int, T...>,
                                                    std::integer_sequence<int, D...>) {
    return {Tile::isa,
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
            to_planes(),
            Tile::least_plain_depth,
            most_products()};
  }
  static constexpr BlockedConvKernels<Number> table() {
    return table(std::make_integer_sequence<int, Tile::pixels>{}, std::make_integer_sequence<int, Tile::two_pixels>{},
                 std::make_integer_sequence<int, Tile::dw_pixels>{});
  }
};

// What Tile has for instruction sets that broadcast from memory; a block is a vector or more.
template <class Arch, int Vectors>
struct BroadcastPixels {
  using S = Simd<Arch>;
  using Number = float;
  static constexpr Isa isa = Arch::isa;

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
