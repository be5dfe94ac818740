// Quantizes vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/quantize/quantize.h"
#include "kernels/simd/simd.h"

namespace tenon::kernels {

template <class Arch>
struct QuantizeArrays {
  using S = Simd<Arch>;
  using F = typename S::F;
  using I = typename S::I;

  static constexpr int vectors = 4;
  static constexpr int64_t at_once = vectors * S::width;

  // Where `mask`, whose lanes are 0 or -1, `a`, else `b`. Conditions are taken apart lane by lane.
  static F choose(I mask, F a, F b) { return S::from_bits((S::bits(a) & mask) | (S::bits(b) & ~mask)); }

  // Of a number and NaN, the number: `b` is no NaN.
  static F greater(F a, F b) {
    if constexpr (requires { Arch::greater_number(a, b); })
      return Arch::greater_number(a, b);
    else
      return choose(a > b, a, b);
  }
  static F lesser(F a, F b) {
    if constexpr (requires { Arch::lesser_number(a, b); })
      return Arch::lesser_number(a, b);
    else
      return choose(a < b, a, b);
  }

  struct Numbers {
    F scale, low, high;
    int32_t zero;
  };

  static I quotient(F value, const Numbers& numbers) {
    // Adding it leaves no bits for a fraction, and the whole part in the lowest bits.
    const F shift = S::set(12582912.0f);
    value = lesser(greater(value / numbers.scale, numbers.low), numbers.high);
    return S::bits(value + shift) - (S::bits(shift) - numbers.zero);
  }

  // The low bits of `at_once` numbers.
  template <class T>
  static void narrow(const I (&from)[vectors], T* to) {
    if constexpr (requires { Arch::narrow(from, to); }) {
      Arch::narrow(from, to);
    } else {
      int32_t wide[at_once];
      std::memcpy(wide, from, sizeof wide);
      for (int64_t i = 0; i < at_once; ++i) to[i] = static_cast<T>(wide[i]);
    }
  }

  template <class T>
  static void tile(const float* x, T* y, const Numbers& numbers) {
    I codes[vectors];
    for (int k = 0; k < vectors; ++k) codes[k] = quotient(S::load(x + k * S::width), numbers);
    narrow(codes, y);
  }

  template <class T>
  static void quantize(const float* x, T* y, int64_t n, float scale, float zero) {
    using Limits = std::numeric_limits<T>;
    const Numbers numbers{S::set(scale), S::set(static_cast<float>(Limits::min()) - zero),
                          S::set(static_cast<float>(Limits::max()) - zero), static_cast<int32_t>(zero)};
    int64_t i = 0;
    for (; i + at_once <= n; i += at_once) tile(x + i, y + i, numbers);
    if (i == n) return;
    float last[at_once] = {};
    T codes[at_once];
    std::copy_n(x + i, n - i, last);
    tile(last, codes, numbers);
    std::copy_n(codes, n - i, y + i);
  }

  static std::pair<float, float> range(const float* x, int64_t n) {
    // Several at once, because each comparison waits for the one before it.
    F low[vectors] = {}, high[vectors] = {};
    const auto take = [&](F value, int k) {
      low[k] = lesser(value, low[k]);
      high[k] = greater(value, high[k]);
    };
    int64_t i = 0;
    for (; i + at_once <= n; i += at_once) {
      for (int k = 0; k < vectors; ++k) take(S::load(x + i + k * S::width), k);
    }
    for (; i < n; i += S::width) take(S::load_part(x + i, std::min<int64_t>(S::width, n - i)), 0);
    std::pair<float, float> result{0, 0};
    for (int k = 0; k < vectors; ++k) {
      for (int lane = 0; lane < S::width; ++lane) {
        result.first = std::min(result.first, low[k][lane]);
        result.second = std::max(result.second, high[k][lane]);
      }
    }
    return result;
  }

  static constexpr QuantizeKernels table() {
    return {Arch::isa, quantize<uint8_t>, quantize<int8_t>, quantize<uint16_t>, quantize<int16_t>, range};
  }
};

}  // namespace tenon::kernels
