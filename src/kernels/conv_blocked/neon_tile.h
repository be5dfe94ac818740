// The order of loads and products in tiles on NEON, for floats and for half precision.
#pragma once

#include <utility>

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {

// Base has, of internal linkage: isa, S, Number, load, add_product, add_product_of_lane, and what loads one number of a
// pixel, two or a vector of them.
template <class Base>
struct NeonTile : Base {
  using S = typename Base::S;
  using Number = typename Base::Number;
  static constexpr int width = S::width, vectors = 2, block = vectors * width;
  static constexpr int pixels = 12;
  static constexpr int two_pixels = 6;
  static constexpr bool orders_statements = true;
  static constexpr int dw_pixels = 6;
  static constexpr int registers = 32, row_lines = 3;
  static constexpr int64_t least_plain_depth = 0;
  static constexpr int64_t size = sizeof(Number);
  // Vectors of the weights of two blocks that a vector of a pixel's lanes is multiplied by.
  static constexpr int vector_lanes = 2 * vectors * width;
  // Of a step; gcc does not keep the sums in registers where there is code for more.
  static constexpr int lanes_at_once = 8;

  // Goes on to the next lanes and returns where they are; after the last ones, where some are.
  template <int Lanes>
  [[gnu::always_inline]] static int64_t go_on(const int64_t* steps, int64_t count, int64_t bytes, int64_t& step,
                                              int64_t& lane) {
    if (Lanes > lanes_at_once && lane + lanes_at_once < Lanes) {
      lane += lanes_at_once;
      return bytes + lanes_at_once * size;
    }
    lane = 0;
    ++step;
    return steps[step < count ? step : step - 1] * size;
  }

  // Lanes of a step, whose first pixels are in `value` already; at the end, if it Continues, those at `next` are. The
  // accumulators, the weights of two lanes and the next pixels fill the registers. These statements stay in their
  // order: gcc would load all pixels first and run out of registers.
  template <int P, int Lanes, bool Continues, class F, int Ahead>
  [[gnu::always_inline]] static void multiply_add_lanes(F (&acc)[P][vectors], F (&value)[Ahead],
                                                        const Number* const (&x)[P], int64_t bytes, int64_t next,
                                                        const Number* w) {
#pragma GCC unroll 4
    for (int lane = 0; lane < Lanes; lane += 2, w += 2 * block) {
      const F w0 = S::load(w), w1 = S::load(w + width), w2 = S::load(w + 2 * width), w3 = S::load(w + 3 * width);
#pragma GCC unroll 4
      for (int first = 0; first < P; first += Ahead) {
#pragma GCC unroll 4
        for (int j = 0; j < Ahead; ++j) {
          if (first + j >= P) break;
          Base::template add_product_of_lane<0>(acc[first + j][0], w0, value[j]);
          Base::template add_product_of_lane<0>(acc[first + j][1], w1, value[j]);
        }
#pragma GCC unroll 4
        for (int j = 0; j < Ahead; ++j) {
          if (first + j < P) {
            Base::template add_product_of_lane<1>(acc[first + j][0], w2, value[j]);
            Base::template add_product_of_lane<1>(acc[first + j][1], w3, value[j]);
          }
          if (first + Ahead + j < P)
            Base::load_two(value[j], x[first + Ahead + j], bytes + lane * size);
          else if (first + Ahead >= P && (Continues || lane + 2 < Lanes))
            Base::load_two(value[j], x[j], lane + 2 < Lanes ? bytes + (lane + 2) * size : next);
        }
      }
    }
  }

  // Vector number N of the weights of some lanes, of which those of two blocks take turns, lane by lane.
  template <int N, class F>
  static void load_weight(F& weight, const Number* w, const Number* second) {
    constexpr int lane = N / 4, at = lane * block + N % 2 * width;
    asm volatile("ldr %q0, %1" : "+w"(weight) : "m"(*reinterpret_cast<const F*>((N % 4 < 2 ? w : second) + at)));
  }

  // Products of one vector of weights, which is in weight[N % 2], with all pixels. After the first of them the other
  // one is free for vector N + 1. Continues: after those of the last lane in a pixel's register that is, for those at
  // `next`.
  template <int P, bool Continues, int N, class F>
  [[gnu::always_inline]] static void multiply_add_vector(F (&acc)[P][2 * vectors], F (&value)[P], F (&weight)[2],
                                                         const Number* const (&x)[P], int64_t next, const Number* w,
                                                         const Number* second) {
    constexpr int lane = N / 4 % width, j = N % 4;
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      Base::template add_product_of_lane<lane>(acc[i][j], weight[N % 2], value[i]);
      if constexpr (Continues && N % vector_lanes == vector_lanes - 1) Base::load_vector(value[i], x[i], next);
      if (i == 0) load_weight<N + 1>(weight[(N + 1) % 2], w, second);
    }
  }

  // The same for the vectors of some lanes, which are at `bytes` and, if it Continues, at `next` at the end.
  template <int P, bool Continues, int... N, class F>
  [[gnu::always_inline]] static void multiply_add_vectors(std::integer_sequence<int, N...>, F (&acc)[P][2 * vectors],
                                                          F (&value)[P], F (&weight)[2], const Number* const (&x)[P],
                                                          int64_t bytes, int64_t next, const Number* w,
                                                          const Number* second) {
    constexpr int last = static_cast<int>(sizeof...(N)) - vector_lanes;
    (multiply_add_vector<P, Continues, N>(acc, value, weight, x, N < last ? bytes + 16 : next, w, second), ...);
  }

  // All steps of a tile of two blocks. The accumulators, a vector of lanes of each pixel and two vectors of weights
  // fill the registers. fetch_next() is called for each step.
  template <int P, int Lanes, class F, class Fetch>
  [[gnu::always_inline]] static void multiply_add_steps(F (&acc)[P][2 * vectors], const Number* const (&x)[P],
                                                        const int64_t* steps, int64_t count, const Number* w,
                                                        int64_t weight_step, Fetch fetch_next) {
    constexpr std::make_integer_sequence<int, 4> one_lane;
    constexpr std::make_integer_sequence<int, 8> two_lanes;
    const auto bytes_at = [&](int64_t s) { return steps[s] * size; };
    if (count == 0) return;
    const Number* second = w + weight_step;
    F value[P] = {}, weight[2] = {};
    load_weight<0>(weight[0], w, second);
    if constexpr (Lanes == 1) {
      for (int64_t s = 0; s < count;) {
        fetch_next();
        const int64_t bytes = bytes_at(s);
        // Steps to neighbouring columns are worked on as two lanes.
        if (s + 1 < count && steps[s + 1] == steps[s] + 1) {
#pragma GCC unroll 8
          for (int i = 0; i < P; ++i) Base::load_two(value[i], x[i], bytes);
          multiply_add_vectors<P, false>(two_lanes, acc, value, weight, x, bytes, bytes, w, second);
          s += 2, w += 2 * block, second += 2 * block;
        } else {
#pragma GCC unroll 8
          for (int i = 0; i < P; ++i) Base::load_one(value[i], x[i], bytes);
          multiply_add_vectors<P, false>(one_lane, acc, value, weight, x, bytes, bytes, w, second);
          ++s, w += block, second += block;
        }
      }
    } else {
      int64_t bytes = bytes_at(0);
#pragma GCC unroll 8
      for (int i = 0; i < P; ++i) Base::load_vector(value[i], x[i], bytes);
      for (int64_t s = 0, lane = 0; s < count; w += lanes_at_once * block, second += lanes_at_once * block) {
        if (Lanes == lanes_at_once || lane == 0) fetch_next();
        const int64_t next = go_on<Lanes>(steps, count, bytes, s, lane);
        multiply_add_vectors<P, true>(std::make_integer_sequence<int, 4 * lanes_at_once>{}, acc, value, weight, x,
                                      bytes, next, w, second);
        bytes = next;
      }
    }
  }

  // All steps of a tile. fetch_next() is called for each.
  template <int P, int Lanes, class F, class Fetch>
  [[gnu::always_inline]] static void multiply_add_steps(F (&acc)[P][vectors], const Number* const (&x)[P],
                                                        const int64_t* steps, int64_t count, const Number* w,
                                                        int64_t /*weight_step*/, Fetch fetch_next) {
    constexpr int ahead = P < 4 ? P : 4;
    const auto bytes_at = [&](int64_t s) { return steps[s] * size; };
    if (count == 0) return;
    int64_t bytes = bytes_at(0);
    if constexpr (Lanes == 1) {
      for (int64_t s = 0; s < count;) {
        fetch_next();
        // Steps to neighbouring columns are worked on as two lanes.
        if (s + 1 < count && steps[s + 1] == steps[s] + 1) {
          F value[ahead] = {};
#pragma GCC unroll 4
          for (int i = 0; i < ahead; ++i) Base::load_two(value[i], x[i], bytes);
          const int64_t next = bytes_at(s + 2 < count ? s + 2 : s);
          multiply_add_lanes<P, 2, false>(acc, value, x, bytes, next, w);
          bytes = next, s += 2, w += 2 * block;
          continue;
        }
        const F w0 = S::load(w), w1 = S::load(w + width);
        const int64_t next = bytes_at(s + 1 < count ? s + 1 : s);
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          F value;
          Base::load_one(value, x[i], bytes);
          Base::template add_product_of_lane<0>(acc[i][0], w0, value);
          Base::template add_product_of_lane<0>(acc[i][1], w1, value);
        }
        bytes = next, ++s, w += block;
      }
    } else {
      F value[ahead] = {};
#pragma GCC unroll 4
      for (int i = 0; i < ahead; ++i) Base::load_two(value[i], x[i], bytes);
      for (int64_t s = 0, lane = 0; s < count; w += lanes_at_once * block) {
        if (Lanes == lanes_at_once || lane == 0) fetch_next();
        const int64_t next = go_on<Lanes>(steps, count, bytes, s, lane);
#pragma GCC unroll 4
        for (int64_t at = 0; at < lanes_at_once * block; at += 64 / size)
          __builtin_prefetch(w + 4 * lanes_at_once * block + at);
        multiply_add_lanes<P, lanes_at_once, true>(acc, value, x, bytes, next, w);
        bytes = next;
      }
    }
  }
};

}  // namespace tenon::kernels
