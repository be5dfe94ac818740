#include "kernels/simd/neon.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int vectors = 2;
  static constexpr int pixels = 12;
  static constexpr int two_pixels = 0;  // one block fills the registers
  static constexpr int dw_pixels = 6;

  // The accumulators, the weights of two lanes and the next pixels fill the registers. These statements stay in their
  // order: gcc would load all pixels first and run out of registers.
  template <int Lane, class F>
  static void multiply_add_lane(F& acc, float32x4_t w, float32x4_t value) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc) : "w"(w), "w"(value), "i"(Lane));
  }
  static void load_one(float32x4_t& value, const float* x, int64_t bytes) {
    asm volatile("ldr %s0, [%1, %2]" : "=w"(value) : "r"(x), "r"(bytes));
  }
  static void load_two(float32x4_t& value, const float* x, int64_t bytes) {
    asm volatile("ldr %d0, [%1, %2]" : "=w"(value) : "r"(x), "r"(bytes));
  }

  template <int P, int Lanes, class F>
  static void multiply_add(F (&acc)[P][vectors], const float* const (&x)[P], int64_t at, const float* w, int64_t) {
    constexpr int ahead = P < 4 ? P : 4;
    const int64_t bytes = at * static_cast<int64_t>(sizeof(float));
    float32x4_t value[ahead];
    if constexpr (Lanes == 1) {
      const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + 4);
#pragma GCC unroll 4
      for (int i = 0; i < ahead; ++i) load_one(value[i], x[i], bytes);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
        multiply_add_lane<0>(acc[i][0], w0, value[i % ahead]);
        multiply_add_lane<0>(acc[i][1], w1, value[i % ahead]);
        if (i + ahead < P) load_one(value[i % ahead], x[i + ahead], bytes);
      }
      return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < ahead; ++i) load_two(value[i], x[i], bytes);
#pragma GCC unroll 4
    for (int lane = 0; lane < Lanes; lane += 2, w += 16) {
      const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + 4), w2 = vld1q_f32(w + 8), w3 = vld1q_f32(w + 12);
#pragma GCC unroll 4
      for (int first = 0; first < P; first += ahead) {
#pragma GCC unroll 4
        for (int j = 0; j < ahead; ++j) {
          if (first + j >= P) break;
          multiply_add_lane<0>(acc[first + j][0], w0, value[j]);
          multiply_add_lane<0>(acc[first + j][1], w1, value[j]);
        }
#pragma GCC unroll 4
        for (int j = 0; j < ahead; ++j) {
          if (first + j < P) {
            multiply_add_lane<1>(acc[first + j][0], w2, value[j]);
            multiply_add_lane<1>(acc[first + j][1], w3, value[j]);
          }
          if (first + ahead + j < P)
            load_two(value[j], x[first + ahead + j], bytes + lane * 4);
          else if (first + ahead >= P && lane + 2 < Lanes)
            load_two(value[j], x[j], bytes + lane * 4 + 8);
        }
      }
    }
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_neon = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
