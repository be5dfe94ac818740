#include "kernels/simd/neon.h"

#include "kernels/gemm/tile_kernel.h"

namespace tenon::kernels {
namespace {

struct Tile {
  using Arch = Neon;
  static constexpr int rows = 8;
  static constexpr int vectors = 3;
  static constexpr bool multiplies_rows_in_place = true, reads_many_columns_in_place = false;
  static constexpr bool packs_rows_meanwhile = false;
  static constexpr int64_t most_steps_in_place = 0;

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

  // Both sides where they are, four steps at a time. Registers are loaded anew right behind their last use, and
  // addresses are ready long before: gcc would compute them right before the loads.
  template <int V, class F>
  [[gnu::always_inline]] static void multiply_unpacked(int64_t k, const GemmPanel& a, const GemmPanel& b,
                                                       F (&acc)[unpacked_rows][V]) {
#pragma GCC unroll 6
    for (auto& sums : acc) {
#pragma GCC unroll 4
      for (F& sum : sums) asm volatile("movi %0.4s, #0" : "=w"(sum));  // gcc would copy one, which takes longer
    }
    const float* at[unpacked_rows];
    UnpackedRight right{b.data, b.stride * 4};
#pragma GCC unroll 6
    for (int i = 0; i < unpacked_rows; ++i) at[i] = a.data + i * a.stride;
    int64_t offset = 0;  // in bytes
    if (k >= 4) {
      float32x4_t left[unpacked_rows], vectors[2];
#pragma GCC unroll 6
      for (int i = 0; i < unpacked_rows; ++i) load(left[i], at[i]);
      right.template load<0, V>(vectors[0]);
      right.template load<1 % V, V>(vectors[1]);
      constexpr std::make_integer_sequence<int, 4 * V> all;
      for (; k >= 8; k -= 4) {
        advance(offset, 16);
        four_steps<true>(all, at, offset, left, right, vectors, acc);
      }
      four_steps<false>(all, at, offset, left, right, vectors, acc);
      offset += 16;
      k -= 4;
    }
    for (; k > 0; --k, offset += 4, right.row += b.stride) {
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) {
        const float32x4_t vector = vld1q_f32(right.row + 4 * j);
#pragma GCC unroll 6
        for (int i = 0; i < unpacked_rows; ++i)
          acc[i][j] = (F)vfmaq_n_f32((float32x4_t)acc[i][j], vector, at[i][offset / 4]);
      }
    }
  }
  static void advance(int64_t& offset, int64_t by) { asm volatile("add %0, %0, %1" : "+r"(offset) : "r"(by)); }

  // Vectors of rows one after the other.
  struct UnpackedRight {
    const float* row;
    int64_t stride;  // in bytes

    // Vector J of V of the row.
    template <int J, int V>
    [[gnu::always_inline]] void load(float32x4_t& to) {
      asm volatile("ldr %q0, [%1, %2]" : "=w"(to) : "r"(row), "i"(16 * J));
      if constexpr (J == V - 1) asm volatile("add %0, %0, %1" : "+r"(row) : "r"(stride));
    }
  };

  template <bool More, int V, class F, int... N>
  [[gnu::always_inline]] static void four_steps(std::integer_sequence<int, N...>,
                                                const float* const (&at)[unpacked_rows], int64_t offset,
                                                float32x4_t (&left)[unpacked_rows], UnpackedRight& right,
                                                float32x4_t (&vectors)[2], F (&acc)[unpacked_rows][V]) {
    (multiply_vector<More, N>(at, offset, left, right, vectors, acc), ...);
  }
  // All rows times vector number N of four steps, and the load of the one after the next.
  template <bool More, int N, int V, class F>
  [[gnu::always_inline]] static void multiply_vector(const float* const (&at)[unpacked_rows], int64_t offset,
                                                     float32x4_t (&left)[unpacked_rows], UnpackedRight& right,
                                                     float32x4_t (&vectors)[2], F (&acc)[unpacked_rows][V]) {
#pragma GCC unroll 6
    for (int i = 0; i < unpacked_rows; ++i) {
      multiply_add<N / V>(acc[i][N % V], vectors[N % 2], left[i]);
      if constexpr (More && N == 4 * V - 1) asm volatile("ldr %q0, [%1, %2]" : "=w"(left[i]) : "r"(at[i]), "r"(offset));
    }
    if constexpr (More || N + 2 < 4 * V) right.template load<(N + 2) % V, V>(vectors[N % 2]);
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
