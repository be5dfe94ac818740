#include "kernels/simd/neon_fp16.h"

#include <algorithm>

#include "kernels/math/math.h"

namespace tenon::kernels {
namespace {

using H = NeonHalf;
using F = H::F;

struct Constant {
  alignas(16) __fp16 lanes[H::width];
  explicit constexpr Constant(double value) : lanes() {
    for (__fp16& lane : lanes) lane = static_cast<__fp16>(value);
  }
  F load() const { return (F)vld1q_f16(lanes); }
  // For every fma that adds it, which overwrites it: a copy of a register would take one of the units that compute.
  F load_anew() const {
    F v;
    asm volatile("ldr %q0, %1" : "=w"(v) : "m"(lanes));
    return v;
  }
};

// Below this, x / (1 + exp(-x)) is nearly 0, and above the other it is x.
constexpr float least = -18.7f, most = 9.5f;

template <int count, class Step>
[[gnu::always_inline]] inline void each(Step step) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) step(i);
}

// 1 + exp(-x), of which the last vectors of a silu make quotients: divided by a power of two where it is too large,
// which is in `power`.
template <int count>
[[gnu::always_inline]] inline void divisors(const uint16_t* x, uint16_t* divisor, uint16_t* power) {
  // log2(e) and what is left of it; 2^-r on |r| <= 1 / 2.
  static constexpr Constant minus_log2e(-1.442695041), log2e(1.442695041), log2e_rest(1.442695041 - 1.4423828125);
  static constexpr Constant shift(1536), c0(1), c1(-0.69326099), c2(0.24261112), c3(-0.05517166);
  // The largest power of two that is not left out. The 1 is nothing where one is.
  static constexpr Constant highest_power(1536 + 13);
  F near[count], shifted[count], r[count], e[count];
  each<count>([&](int i) { near[i] = H::at_least(H::set(least), H::load(x + i * H::width)); });
  // The last bits of `shifted` are n, with -x * log2(e) = n - r.
  each<count>([&](int i) { shifted[i] = H::fma(near[i], minus_log2e.load(), shift.load_anew()); });
  each<count>([&](int i) { r[i] = H::fma(near[i], log2e.load(), shifted[i] - shift.load()); });
  each<count>([&](int i) { r[i] = H::fma(near[i], log2e_rest.load(), r[i]); });
  each<count>([&](int i) { e[i] = H::fma(r[i], c3.load(), c2.load_anew()); });
  each<count>([&](int i) { e[i] = H::fma(e[i], r[i], c1.load_anew()); });
  each<count>([&](int i) { e[i] = H::fma(e[i], r[i], c0.load_anew()); });
  each<count>([&](int i) {
    const auto all = (int16x8_t)shifted[i], n = vminq_s16(all, (int16x8_t)highest_power.load());
    H::store(divisor + i * H::width, (F)vaddq_s16((int16x8_t)e[i], vshlq_n_s16(n, 10)) + c0.load());
    H::store(power + i * H::width, (F)vaddq_s16(vshlq_n_s16(vsubq_s16(n, all), 10), (int16x8_t)c0.load()));
  });
}

// What is divided has 8 bits at first, and what these leave gives the others.
template <int count>
[[gnu::always_inline]] inline void quotients(const uint16_t* x, const uint16_t* divisor, const uint16_t* power,
                                             uint16_t* y) {
  F given[count], quotient[count];
  each<count>([&](int i) {
    given[i] = H::load(x + i * H::width);
    const F near = H::at_least(H::set(least), given[i]), by = H::load(divisor + i * H::width);
    const F estimate = (F)vrecpeq_f16((float16x8_t)by), first = near * estimate;
    const F rest = (F)vfmsq_f16((float16x8_t)near, (float16x8_t)by, (float16x8_t)first);
    quotient[i] = H::fma(rest, estimate, first) * H::load(power + i * H::width);
  });
  each<count>([&](int i) {
    const uint16x8_t is_high = vcgtq_f16((float16x8_t)given[i], (float16x8_t)H::set(most));
    H::store(y + i * H::width, (F)vbslq_f16(is_high, (float16x8_t)given[i], (float16x8_t)quotient[i]));
  });
}

// In two steps: more of their operations are under way at once than of a longer one.
constexpr int64_t block = 32 * H::width;
template <int count>
void silu(const uint16_t* x, uint16_t* y, int64_t n) {
  alignas(16) uint16_t divisor[block], power[block];
  constexpr int64_t at_once = count * H::width;
  for (int64_t i = 0; i < n; i += at_once) divisors<count>(x + i, divisor + i, power + i);
  for (int64_t i = 0; i < n; i += at_once) quotients<count>(x + i, divisor + i, power + i, y + i);
}

}  // namespace

void f16_silu_neon_fp16(const uint16_t* x, uint16_t* y, int64_t n) {
  constexpr int64_t at_once = 4 * H::width;
  int64_t i = 0;
  for (; i + at_once <= n; i += std::min(block, (n - i) / at_once * at_once))
    silu<4>(x + i, y + i, std::min(block, (n - i) / at_once * at_once));
  for (; i + H::width <= n; i += H::width) silu<1>(x + i, y + i, H::width);
  if (i == n) return;
  uint16_t rest[H::width] = {};
  std::memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(uint16_t));
  silu<1>(rest, rest, H::width);
  std::memcpy(y + i, rest, static_cast<size_t>(n - i) * sizeof(uint16_t));
}

}  // namespace tenon::kernels
