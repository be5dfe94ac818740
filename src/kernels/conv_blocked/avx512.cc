#include "kernels/simd/avx512.h"

#include "kernels/conv_blocked/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile : BroadcastPixels<Avx512, 1> {
  static constexpr int vectors = 1;
  static constexpr int pixels = 16;
  static constexpr int two_pixels = 14;
  static constexpr bool orders_statements = false;
  static constexpr int dw_pixels = 8;
  static constexpr int registers = 32, row_lines = 2;
  static constexpr int64_t least_plain_depth = 5;

  // These stay in their order: gcc would load a pixel for each product, and move sums from register to register.
  template <class F>
  static void load(F& v, const float* p) {
    asm volatile("vmovups %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const float(*)[S::width]>(p)));
  }
  template <class F>
  static void broadcast(F& v, const float* p) {
    asm volatile("vbroadcastss %1, %0" : "=v"(v) : "m"(*p));
  }
  template <class F>
  static void add_product(F& sum, F a, F b) {
    F s = sum;  // gcc keeps what asm refers to in memory, if it is part of an array
    asm volatile("vfmadd231ps %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
    sum = s;
  }
  template <class F>
  static void add_product(F& sum, const float* pixel, F weight) {
    F s = sum;
    asm volatile("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(s) : "m"(*pixel), "v"(weight));
    sum = s;
  }

  template <int P, int Lanes, int64_t Ahead = 0, class F, int V, class Step>
  [[gnu::always_inline]] static void multiply_add_even(F (&acc)[P][V], const float* x, const float* w,
                                                       int64_t weight_step, Step step) {
    // Instructions are shortest if what they read is no more than 8 lines from a pointer.
    constexpr bool are_neighbours = !std::is_same_v<Step, int64_t>;
    constexpr int at_once = Lanes % 4 == 0 ? 4 : 1, middle = 8, pointers = are_neighbours ? 1 : (P + 2) / 3;
    const float *bases[pointers], *weights[V];
#pragma GCC unroll 8
    for (int k = 0; k < pointers; ++k) bases[k] = x + (are_neighbours ? middle : 3 * k) * step;
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) weights[j] = w + j * weight_step;
    for (int lane = 0; lane < Lanes; lane += at_once) {
#pragma GCC unroll 4
      for (int l = 0; l < at_once; ++l) {
        if constexpr (Ahead > 0) __builtin_prefetch(weights[0] + l * S::width + Ahead);
        F weight[V];
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) load(weight[j], weights[j] + l * S::width);
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          const float* pixel = (are_neighbours ? bases[0] + (i - middle) * step : bases[i / 3] + i % 3 * step) + l;
          if constexpr (V == 1) {
            add_product(acc[i][0], pixel, weight[0]);
          } else {
            F value;
            broadcast(value, pixel);
#pragma GCC unroll 2
            for (int j = 0; j < V; ++j) add_product(acc[i][j], value, weight[j]);
          }
        }
      }
#pragma GCC unroll 8
      for (int k = 0; k < pointers; ++k) bases[k] += at_once;
#pragma GCC unroll 2
      for (int j = 0; j < V; ++j) weights[j] += at_once * S::width;
    }
  }
};

}  // namespace

constexpr ConvBlockedKernels conv_blocked_kernels_avx512 = ConvBlockedTiles<Tile>::table();

}  // namespace tenon::kernels
