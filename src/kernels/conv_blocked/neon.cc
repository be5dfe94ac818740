#include "kernels/simd/neon.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int vectors = 2;
  static constexpr int pixels = 12;
  static constexpr int two_pixels = 6;
  static constexpr bool orders_statements = true;
  static constexpr int dw_pixels = 6;
  static constexpr int registers = 32, row_lines = 3;
  static constexpr int64_t least_plain_depth = 0;

  template <class F>
  static void load(F& v, const float* p) {
    asm volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const float32x4_t*>(p)));
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    asm volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(a), "w"(b));
  }

  template <int Lane, class F>
  static void add_product_of_lane(F& sum, F w, F value) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(w), "w"(value), "i"(Lane));
  }
  template <class F>
  static void load_one(F& value, const float* x, int64_t bytes) {
    asm volatile("ldr %s0, [%1, %2]" : "=w"(value) : "r"(x), "r"(bytes));
  }
  // Into the same register: from step to step, gcc would exchange them.
  template <class F>
  static void load_two(F& value, const float* x, int64_t bytes) {
    asm volatile("ldr %d0, [%1, %2]" : "+w"(value) : "r"(x), "r"(bytes));
  }

  // Lanes of a step, whose first pixels are in `value` already; at the end, if it Continues, those at `next` are. The
  // accumulators, the weights of two lanes and the next pixels fill the registers. These statements stay in their
  // order: gcc would load all pixels first and run out of registers.
  template <int P, int Lanes, bool Continues, class F, int Ahead>
  [[gnu::always_inline]] static void multiply_add_lanes(F (&acc)[P][vectors], F (&value)[Ahead],
                                                        const float* const (&x)[P], int64_t bytes, int64_t next,
                                                        const float* w) {
#pragma GCC unroll 4
    for (int lane = 0; lane < Lanes; lane += 2, w += 16) {
      const F w0 = (F)vld1q_f32(w), w1 = (F)vld1q_f32(w + 4), w2 = (F)vld1q_f32(w + 8), w3 = (F)vld1q_f32(w + 12);
#pragma GCC unroll 4
      for (int first = 0; first < P; first += Ahead) {
#pragma GCC unroll 4
        for (int j = 0; j < Ahead; ++j) {
          if (first + j >= P) break;
          add_product_of_lane<0>(acc[first + j][0], w0, value[j]);
          add_product_of_lane<0>(acc[first + j][1], w1, value[j]);
        }
#pragma GCC unroll 4
        for (int j = 0; j < Ahead; ++j) {
          if (first + j < P) {
            add_product_of_lane<1>(acc[first + j][0], w2, value[j]);
            add_product_of_lane<1>(acc[first + j][1], w3, value[j]);
          }
          if (first + Ahead + j < P)
            load_two(value[j], x[first + Ahead + j], bytes + lane * 4);
          else if (first + Ahead >= P && (Continues || lane + 2 < Lanes))
            load_two(value[j], x[j], lane + 2 < Lanes ? bytes + lane * 4 + 8 : next);
        }
      }
    }
  }

  // Into the same register, as load_two.
  template <class F>
  static void load_four(F& value, const float* x, int64_t bytes) {
    asm volatile("ldr %q0, [%1, %2]" : "+w"(value) : "r"(x), "r"(bytes));
  }

  // Vector number N of the weights of some lanes, of which those of two blocks take turns, lane by lane.
  template <int N, class F>
  static void load_weight(F& weight, const float* w, const float* second) {
    constexpr int lane = N / 4, at = lane * 8 + N % 2 * 4;
    asm volatile("ldr %q0, %1"
                 : "+w"(weight)
                 : "m"(*reinterpret_cast<const float32x4_t*>((N % 4 < 2 ? w : second) + at)));
  }

  // Products of one vector of weights, which is in weight[N % 2], with all pixels. After the first of them the other
  // one is free for vector N + 1. Continues: after those of a pixel's fourth lane its register is, for those at `next`.
  template <int P, bool Continues, int N, class F>
  [[gnu::always_inline]] static void multiply_add_vector(F (&acc)[P][2 * vectors], F (&value)[P], F (&weight)[2],
                                                         const float* const (&x)[P], int64_t next, const float* w,
                                                         const float* second) {
    constexpr int lane = N / 4 % 4, j = N % 4;
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      add_product_of_lane<lane>(acc[i][j], weight[N % 2], value[i]);
      if constexpr (Continues && N % 16 == 15) load_four(value[i], x[i], next);
      if (i == 0) load_weight<N + 1>(weight[(N + 1) % 2], w, second);
    }
  }

  // The same for the vectors of some lanes, which are at `bytes` and, if it Continues, at `next` at the end.
  template <int P, bool Continues, int... N, class F>
  [[gnu::always_inline]] static void multiply_add_vectors(std::integer_sequence<int, N...>, F (&acc)[P][2 * vectors],
                                                          F (&value)[P], F (&weight)[2], const float* const (&x)[P],
                                                          int64_t bytes, int64_t next, const float* w,
                                                          const float* second) {
    (multiply_add_vector<P, Continues, N>(acc, value, weight, x, N < 16 ? bytes + 16 : next, w, second), ...);
  }

  // All steps of a tile of two blocks. The accumulators, up to four lanes of each pixel and two vectors of weights fill
  // the registers. fetch_next() is called for each step.
  template <int P, int Lanes, class F, class Fetch>
  [[gnu::always_inline]] static void multiply_add_steps(F (&acc)[P][2 * vectors], const float* const (&x)[P],
                                                        const int64_t* steps, int64_t count, const float* w,
                                                        int64_t weight_step, Fetch fetch_next) {
    constexpr int block = 8;
    constexpr std::make_integer_sequence<int, 4> one_lane;
    constexpr std::make_integer_sequence<int, 8> two_lanes;
    const auto bytes_at = [&](int64_t s) { return steps[s] * static_cast<int64_t>(sizeof(float)); };
    if (count == 0) return;
    const float* second = w + weight_step;
    F value[P] = {}, weight[2] = {};
    load_weight<0>(weight[0], w, second);
    if constexpr (Lanes == 1) {
      for (int64_t s = 0; s < count;) {
        fetch_next();
        const int64_t bytes = bytes_at(s);
        // Steps to neighbouring columns are worked on as two lanes.
        if (s + 1 < count && steps[s + 1] == steps[s] + 1) {
#pragma GCC unroll 8
          for (int i = 0; i < P; ++i) load_two(value[i], x[i], bytes);
          multiply_add_vectors<P, false>(two_lanes, acc, value, weight, x, bytes, bytes, w, second);
          s += 2, w += 2 * block, second += 2 * block;
        } else {
#pragma GCC unroll 8
          for (int i = 0; i < P; ++i) load_one(value[i], x[i], bytes);
          multiply_add_vectors<P, false>(one_lane, acc, value, weight, x, bytes, bytes, w, second);
          ++s, w += block, second += block;
        }
      }
    } else {
      int64_t bytes = bytes_at(0);
#pragma GCC unroll 8
      for (int i = 0; i < P; ++i) load_four(value[i], x[i], bytes);
      for (int64_t s = 0; s < count; ++s, w += Lanes * block, second += Lanes * block) {
        const int64_t next = bytes_at(s + 1 < count ? s + 1 : s);
        fetch_next();
        multiply_add_vectors<P, true>(std::make_integer_sequence<int, 4 * Lanes>{}, acc, value, weight, x, bytes, next,
                                      w, second);
        bytes = next;
      }
    }
  }

  // All steps of a tile. fetch_next() is called for each.
  template <int P, int Lanes, class F, class Fetch>
  [[gnu::always_inline]] static void multiply_add_steps(F (&acc)[P][vectors], const float* const (&x)[P],
                                                        const int64_t* steps, int64_t count, const float* w,
                                                        int64_t /*weight_step*/, Fetch fetch_next) {
    constexpr int ahead = P < 4 ? P : 4, block = 8;
    const auto bytes_at = [&](int64_t s) { return steps[s] * static_cast<int64_t>(sizeof(float)); };
    if (count == 0) return;
    int64_t bytes = bytes_at(0);
    if constexpr (Lanes == 1) {
      for (int64_t s = 0; s < count;) {
        fetch_next();
        // Steps to neighbouring columns are worked on as two lanes.
        if (s + 1 < count && steps[s + 1] == steps[s] + 1) {
          F value[ahead] = {};
#pragma GCC unroll 4
          for (int i = 0; i < ahead; ++i) load_two(value[i], x[i], bytes);
          const int64_t next = bytes_at(s + 2 < count ? s + 2 : s);
          multiply_add_lanes<P, 2, false>(acc, value, x, bytes, next, w);
          bytes = next, s += 2, w += 2 * block;
          continue;
        }
        const F w0 = (F)vld1q_f32(w), w1 = (F)vld1q_f32(w + 4);
        const int64_t next = bytes_at(s + 1 < count ? s + 1 : s);
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          F value;
          load_one(value, x[i], bytes);
          add_product_of_lane<0>(acc[i][0], w0, value);
          add_product_of_lane<0>(acc[i][1], w1, value);
        }
        bytes = next, ++s, w += block;
      }
    } else {
      F value[ahead] = {};
#pragma GCC unroll 4
      for (int i = 0; i < ahead; ++i) load_two(value[i], x[i], bytes);
      for (int64_t s = 0; s < count; ++s, w += Lanes * block) {
        const int64_t next = bytes_at(s + 1 < count ? s + 1 : s);
        fetch_next();
#pragma GCC unroll 4
        for (int line = 0; line < Lanes * block; line += 16) __builtin_prefetch(w + 4 * Lanes * block + line);
        multiply_add_lanes<P, Lanes, true>(acc, value, x, bytes, next, w);
        bytes = next;
      }
    }
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_neon = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
