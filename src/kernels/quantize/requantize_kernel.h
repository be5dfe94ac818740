// Requantizes vectors; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/quantize/quantize_kernel.h"
#include "kernels/quantize/requantize.h"

namespace tenon::kernels {

template <class Arch>
struct RequantizeArrays : QuantizeArrays<Arch> {
  using Base = QuantizeArrays<Arch>;
  using S = typename Base::S;
  using F = typename Base::F;
  using I = typename Base::I;
  using Base::at_once, Base::vectors;
  using Unsigned [[gnu::vector_size(sizeof(I))]] = uint32_t;

  struct Numbers {
    F low, high;
    uint32_t addend;
    int32_t zero;
  };

  // Exact floats to which nothing is added stay floats.
  template <bool Adds, class X>
  static F sum(const X* x, const Numbers& numbers) {
    constexpr bool is_float = std::is_same_v<X, float>;
    if constexpr (is_float && !Adds) {
      return S::load(x);
    } else {
      I whole;
      if constexpr (is_float)
        whole = __builtin_convertvector(S::load(x), I);
      else
        std::memcpy(&whole, x, sizeof whole);
      if constexpr (Adds) whole = (I)((Unsigned)whole + numbers.addend);
      return __builtin_convertvector(whole, F);
    }
  }

  static I code(F value, const Numbers& numbers) {
    // Adding it leaves no bits for a fraction, and the whole part in the lowest bits.
    const F shift = S::set(12582912.0f);
    value = Base::lesser(Base::greater(value, numbers.low), numbers.high);
    return S::bits(value + shift) - (S::bits(shift) - numbers.zero);
  }

  template <bool Adds, class X, class Y>
  static void tile(const X* x, const F (&scale)[vectors], Y* y, const Numbers& numbers) {
    I codes[vectors];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) codes[k] = code(sum<Adds>(x + k * S::width, numbers) * scale[k], numbers);
    Base::narrow(codes, y);
  }

  template <bool Adds, class X, class Y>
  static void run(const X* x, Scales scales, Y* y, int64_t n, const Numbers& numbers) {
    F scale[vectors];
    const auto take = [&](const float* from) {
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) scale[k] = S::load(from + k * S::width);
    };
    if (scales.step == 0) std::fill_n(scale, vectors, S::set(*scales.at));
    int64_t i = 0;
    if (scales.step == 0) {
      for (; i + at_once <= n; i += at_once) tile<Adds>(x + i, scale, y + i, numbers);
    } else {
      for (; i + at_once <= n; i += at_once) {
        take(scales.at + i);
        tile<Adds>(x + i, scale, y + i, numbers);
      }
    }
    if (i == n) return;
    X last[at_once] = {};
    float last_scales[at_once] = {};
    Y codes[at_once];
    std::copy_n(x + i, n - i, last);
    if (scales.step != 0) {
      std::copy_n(scales.at + i, n - i, last_scales);
      take(last_scales);
    }
    tile<Adds>(last, scale, codes, numbers);
    std::copy_n(codes, n - i, y + i);
  }

  template <class X, class Y>
  static void requantize(const X* x, int32_t addend, Scales scales, Y zero, Y* y, int64_t n) {
    using Limits = std::numeric_limits<Y>;
    const Numbers numbers{S::set(static_cast<float>(Limits::min() - zero)),
                          S::set(static_cast<float>(Limits::max() - zero)), static_cast<uint32_t>(addend), zero};
    if (addend == 0)
      run<false>(x, scales, y, n, numbers);
    else
      run<true>(x, scales, y, n, numbers);
  }

  static constexpr RequantizeKernels requantize_table() {
    return {Arch::isa, requantize<int32_t, uint8_t>, requantize<int32_t, int8_t>, requantize<float, uint8_t>,
            requantize<float, int8_t>};
  }
};

}  // namespace tenon::kernels
