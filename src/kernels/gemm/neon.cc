#include "kernels/simd/neon.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int rows = 8;
  static constexpr int vectors = 3;
  static constexpr bool multiplies_rows_in_place = true, reads_many_columns_in_place = false;

  // These statements stay in their order: loads between the multiplications, as far from each other as can be, are what
  // keeps all four pipes of a core busy.
  template <int Lane, class F>
  static void multiply_add(F& acc, float32x4_t row, float32x4_t a) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc) : "w"(row), "w"(a), "i"(Lane));
  }
  template <class B>
  static void prefetch(const std::byte*& p, int64_t step) {
    if constexpr (!B::has_ahead) return;
    asm volatile("prfm pldl2keep, [%0]" : : "r"(p));
    p += step;
  }
  static void load(float32x4_t& value, const float* p) {
    asm volatile("ldr %q0, %1" : "=w"(value) : "m"(*reinterpret_cast<const float32x4_t*>(p)));
  }

  // After which multiplication of a step load number `number` for the next one comes.
  template <int R, int V>
  static constexpr int load_after(int number) {
    constexpr int loads = V + R / 4;
    return (number + 1) * R * V / loads - 1;
  }

  // Multiplication number N of a step of R rows, and what is loaded after it. With 8 rows the load in the middle is
  // that of the first left vector.
  template <bool More, int N, int R, int V, class F>
  [[gnu::always_inline]] static void multiply_add_and_load(F (&acc)[R][V], float32x4_t (&a)[2],
                                                           const float32x4_t (&row)[V], float32x4_t (&next)[V],
                                                           const float* next_a, const float* next_b) {
    constexpr int i = N / V, j = N % V, first_half = (V + 1) / 2;
    multiply_add<i % 4>(acc[i][j], row[j], a[i / 4]);
    if constexpr (More && R == 4) {
#pragma GCC unroll 4
      for (int r = 0; r < V; ++r)
        if (N == load_after<R, V>(r)) load(next[r], next_b + 4 * r);
      if constexpr (N == R * V - 1) load(a[0], next_a);
    } else if constexpr (More) {
#pragma GCC unroll 4
      for (int r = 0; r < V; ++r)
        if (N == load_after<R, V>(r < first_half ? r : r + 1)) load(next[r], next_b + 4 * r);
      if constexpr (N == load_after<R, V>(first_half)) load(a[0], next_a);
      if constexpr (N == R * V - 1) load(a[1], next_a + 4);
    }
  }
  template <bool More, int R, int V, class F, int... N>
  [[gnu::always_inline]] static void step(std::integer_sequence<int, N...>, F (&acc)[R][V], float32x4_t (&a)[2],
                                          const float32x4_t (&row)[V], float32x4_t (&next)[V], const float* next_a,
                                          const float* next_b) {
    (multiply_add_and_load<More, N>(acc, a, row, next, next_a, next_b), ...);
  }

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply(int64_t k, const float* a, B b, const std::byte* ahead,
                                              int64_t ahead_step, F (&acc)[R][V]) {
    if constexpr (R != 4 && R != 8) {
      multiply_few(k, a, b, ahead, ahead_step, acc);
    } else if (k > 0) {
      constexpr std::make_integer_sequence<int, R * V> all;
      float32x4_t left[2], even[V], odd[V];
      for (int i = 0; i < R / 4; ++i) load(left[i], a + 4 * i);
      const float* row = b.take();
      for (int j = 0; j < V; ++j) load(even[j], row + 4 * j);
      for (; k > 2; k -= 2) {
        prefetch<B>(ahead, ahead_step);
        step<true>(all, acc, left, even, odd, a + R, b.take());
        prefetch<B>(ahead, ahead_step);
        a += 2 * R;
        step<true>(all, acc, left, odd, even, a, b.take());
      }
      if (k == 1) return step<false>(all, acc, left, even, odd, a, row);
      step<true>(all, acc, left, even, odd, a + R, b.take());
      step<false>(all, acc, left, odd, even, a, row);
    }
  }

  // Rows where they are, four or two steps at a time where there are registers for that. The processor looks far enough
  // ahead, but has no time to bring near what others read.
  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply(int64_t k, const GemmPanel& a, B b, const std::byte*, int64_t,
                                              F (&acc)[R][V]) {
    const float* at[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) at[i] = a.data + i * a.stride;
    int64_t offset = 0;  // in bytes
    for (; V == 1 && k >= 4; k -= 4, offset += 16) {
      float32x4_t left[R];
      step_of_rows<0, 4>(at, offset, left, b.take(), acc);
      step_of_rows<1, 0>(at, offset, left, b.take(), acc);
      step_of_rows<2, 0>(at, offset, left, b.take(), acc);
      step_of_rows<3, 0>(at, offset, left, b.take(), acc);
    }
    for (; V == 2 && k >= 2; k -= 2, offset += 8) {
      float32x4_t left[R];
      step_of_rows<0, 2>(at, offset, left, b.take(), acc);
      step_of_rows<1, 0>(at, offset, left, b.take(), acc);
    }
    for (; k > 0; --k, offset += 4) {
      float32x4_t left[R];
      step_of_rows<0, 1>(at, offset, left, b.take(), acc);
    }
  }
  // One step of all rows, of which `Loaded` floats are loaded before.
  template <int Lane, int Loaded, int R, int V, class F>
  [[gnu::always_inline]] static void step_of_rows(const float* const (&at)[R], int64_t offset, float32x4_t (&left)[R],
                                                  const float* from, F (&acc)[R][V]) {
    float32x4_t row[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) load(row[j], from + 4 * j);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      if constexpr (Loaded == 1) asm volatile("ldr %s0, [%1, %2]" : "=w"(left[i]) : "r"(at[i]), "r"(offset));
      if constexpr (Loaded == 4) asm volatile("ldr %q0, [%1, %2]" : "=w"(left[i]) : "r"(at[i]), "r"(offset));
      if constexpr (Loaded == 2) asm volatile("ldr %d0, [%1, %2]" : "=w"(left[i]) : "r"(at[i]), "r"(offset));
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) multiply_add<Lane>(acc[i][j], row[j], left[i]);
    }
  }

  template <int R, int V, class B, class F>
  [[gnu::always_inline]] static void multiply_few(int64_t k, const float* a, B b, const std::byte* ahead,
                                                  int64_t ahead_step, F (&acc)[R][V]) {
    for (int64_t p = 0; p < k; ++p, a += R) {
      prefetch<B>(ahead, ahead_step);
      const float32x4_t left[2] = {load_lanes<(R < 4 ? R : 4)>(a), load_lanes<(R > 4 ? R - 4 : 0)>(a + 4)};
      const float* at = b.take();
      float32x4_t row[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) row[j] = vld1q_f32(at + 4 * j);
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
  template <int Lane, int V, class F>
  static void add_row(F (&acc)[V], const float32x4_t (&row)[V], float32x4_t a) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) acc[j] = (F)vfmaq_laneq_f32((float32x4_t)acc[j], (float32x4_t)row[j], a, Lane);
  }
};

}  // namespace

constexpr GemmKernels gemm_kernels_neon = GemmTileKernels<Tile>::table();

}  // namespace tenon::kernels
