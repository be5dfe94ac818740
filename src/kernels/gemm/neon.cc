#include "kernels/simd/neon.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int rows = 8;
  static constexpr int vectors = 3;

  // These statements stay in their order: loads between the multiplications, as far from each other as can be, are what
  // keeps all four pipes of a core busy.
  template <int Lane, class F>
  static void multiply_add(F& acc, float32x4_t row, float32x4_t a) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc) : "w"(row), "w"(a), "i"(Lane));
  }
  static void prefetch(const std::byte*& p, int64_t step) {
    asm volatile("prfm pldl2keep, [%0]" : : "r"(p));
    p += step;
  }
  static void load(float32x4_t& value, const float* p) {
    asm volatile("ldr %q0, %1" : "=w"(value) : "m"(*reinterpret_cast<const float32x4_t*>(p)));
  }

  // Multiplication number N of a step of R rows, and what is loaded after it for the next step.
  template <int R, bool More, int N, class F>
  static void multiply_add_and_load(F (&acc)[R][vectors], float32x4_t (&a)[2], const float32x4_t (&row)[vectors],
                                    float32x4_t (&next)[vectors], const float* next_a, const float* next_b) {
    constexpr int i = N / vectors, j = N % vectors;
    multiply_add<i % 4>(acc[i][j], row[j], a[i / 4]);
    if constexpr (More && N == 3) load(next[0], next_b);
    if constexpr (More && N == 8) load(next[1], next_b + 4);
    if constexpr (More && N == 13) load(a[0], next_a);
    if constexpr (More && N == 18) load(next[2], next_b + 8);
    if constexpr (More && N == 23) load(a[1], next_a + 4);
  }
  template <bool More, class F, int... N>
  static void step(std::integer_sequence<int, N...>, F (&acc)[rows][vectors], float32x4_t (&a)[2],
                   const float32x4_t (&row)[vectors], float32x4_t (&next)[vectors], const float* next_a,
                   const float* next_b) {
    (multiply_add_and_load<rows, More, N>(acc, a, row, next, next_a, next_b), ...);
  }

  template <int R, class F>
  static void multiply(int64_t k, const float* a, const float* b, int64_t b_stride, const std::byte* ahead,
                       int64_t ahead_step, F (&acc)[R][vectors]) {
    if constexpr (R < rows) {
      multiply_few(k, a, b, b_stride, ahead, ahead_step, acc);
    } else if (k > 0) {
      constexpr std::make_integer_sequence<int, rows * vectors> all;
      float32x4_t left[2], even[vectors], odd[vectors];
      for (int i = 0; i < 2; ++i) load(left[i], a + 4 * i);
      for (int j = 0; j < vectors; ++j) load(even[j], b + 4 * j);
      for (; k > 2; k -= 2) {
        prefetch(ahead, ahead_step);
        step<true>(all, acc, left, even, odd, a + rows, b + b_stride);
        prefetch(ahead, ahead_step);
        a += 2 * rows;
        b += 2 * b_stride;
        step<true>(all, acc, left, odd, even, a, b);
      }
      if (k == 1) return step<false>(all, acc, left, even, odd, a, b);
      step<true>(all, acc, left, even, odd, a + rows, b + b_stride);
      step<false>(all, acc, left, odd, even, a, b);
    }
  }

  template <int R, class F>
  static void multiply_few(int64_t k, const float* a, const float* b, int64_t b_stride, const std::byte* ahead,
                           int64_t ahead_step, F (&acc)[R][vectors]) {
    for (int64_t p = 0; p < k; ++p, a += R, b += b_stride) {
      prefetch(ahead, ahead_step);
      const float32x4_t left[2] = {load_lanes<(R < 4 ? R : 4)>(a), load_lanes<(R > 4 ? R - 4 : 0)>(a + 4)};
      const float32x4_t row[vectors] = {vld1q_f32(b), vld1q_f32(b + 4), vld1q_f32(b + 8)};
      const auto add = [&]<int... I>(std::integer_sequence<int, I...>) {
        (add_row<I % 4>(acc[I], row, left[I / 4]), ...);
      };
      add(std::make_integer_sequence<int, R>{});
    }
  }
  template <int N>
  static float32x4_t load_lanes(const float* p) {
    float32x4_t value = {};
    if constexpr (N == 1) value = vld1q_dup_f32(p);
    if constexpr (N == 2 || N == 3) value = vcombine_f32(vld1_f32(p), vdup_n_f32(0));
    if constexpr (N == 3) value = vld1q_lane_f32(p + 2, value, 2);
    if constexpr (N == 4) value = vld1q_f32(p);
    return value;
  }
  template <int Lane, class F>
  static void add_row(F (&acc)[vectors], const float32x4_t (&row)[vectors], float32x4_t a) {
#pragma GCC unroll 3
    for (int j = 0; j < vectors; ++j) acc[j] = (F)vfmaq_laneq_f32((float32x4_t)acc[j], (float32x4_t)row[j], a, Lane);
  }
};

}  // namespace

constexpr GemmKernels gemm_kernels_neon = GemmTileKernels<Tile>::table();

}  // namespace tenon::kernels
