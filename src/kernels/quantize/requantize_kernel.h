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
  static constexpr int64_t half = at_once / 2;
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
    F values[vectors];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) values[k] = sum<Adds>(x + k * S::width, numbers) * scale[k];
    store_codes(values, numbers, y);
  }

  template <class Y>
  static void store_codes(const F (&values)[vectors], const Numbers& numbers, Y* y) {
    store_codes(values, numbers, y, y + half);
  }
  // The same with another place for the second half.
  template <class Y>
  static void store_codes(const F (&values)[vectors], const Numbers& numbers, Y* y, Y* second) {
    if constexpr (requires { Arch::round_codes(values, numbers.high, Y{}, y, second); }) {
      Arch::round_codes(values, numbers.high, static_cast<Y>(numbers.zero), y, second);
    } else {
      I codes[vectors];
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) codes[k] = code(values[k], numbers);
      if (second == y + half) return Base::narrow(codes, y);
      Y narrow[at_once];
      Base::narrow(codes, narrow);
      std::copy_n(narrow, half, y);
      std::copy_n(narrow + half, half, second);
    }
  }

  // Codes of rows that are half as wide as what is made at once, two rows at a time. values(x, k) is what vector k of
  // sums at x becomes before it is rounded.
  template <class Y, class Values>
  static void half_rows(const int32_t* x, int64_t ld, int64_t rows, const Numbers& numbers, Y* y, int64_t ldy,
                        Values values) {
    for (int64_t row = 0; row < rows; row += 2) {
      const int64_t second = std::min(row + 1, rows - 1);
      F both[vectors];
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) {
        const int column = k % (vectors / 2);
        both[k] = values(x + (k == column ? row : second) * ld + column * S::width, column);
      }
      store_codes(both, numbers, y + row * ldy, y + second * ldy);
    }
  }

  // The scales of `at_once` elements from `first` on.
  static void take(Scales scales, int64_t first, F (&to)[vectors]) {
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k)
      to[k] = scales.step == 0 ? S::set(*scales.at) : S::load(scales.at + first + k * S::width);
  }

  // The same where there are but `count`.
  static void take_part(Scales from, int64_t first, int64_t count, F (&to)[vectors]) {
    if (count == at_once || from.step == 0) return take(from, first, to);
    float last[at_once] = {};
    std::copy_n(from.at + first, count, last);
    take({last, 1}, 0, to);
  }

  template <bool Adds, class X, class Y>
  static void run(const X* x, Scales scales, Y* y, int64_t n, const Numbers& numbers) {
    F scale[vectors];
    int64_t i = 0;
    if (scales.step == 0) {
      take(scales, 0, scale);
      for (; i + at_once <= n; i += at_once) tile<Adds>(x + i, scale, y + i, numbers);
    } else {
      for (; i + at_once <= n; i += at_once) {
        take(scales, i, scale);
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
      take({last_scales, 1}, 0, scale);
    }
    tile<Adds>(last, scale, codes, numbers);
    std::copy_n(codes, n - i, y + i);
  }

  template <class Y>
  static Numbers numbers_for(int32_t addend, Y zero) {
    using Limits = std::numeric_limits<Y>;
    return {S::set(static_cast<float>(Limits::min() - zero)), S::set(static_cast<float>(Limits::max() - zero)),
            static_cast<uint32_t>(addend), zero};
  }

  template <class X, class Y>
  static void requantize(const X* x, int32_t addend, Scales scales, Y zero, Y* y, int64_t n) {
    const Numbers numbers = numbers_for(addend, zero);
    if (addend == 0)
      run<false>(x, scales, y, n, numbers);
    else
      run<true>(x, scales, y, n, numbers);
  }

  // Scales stay in registers from row to row.
  template <class Y>
  static void requantize_rows(const SumRows& given, Scales scales, Y zero, Y* y, int64_t ldy) {
    const SumRows x = given;  // which nothing that is stored can change
    const Numbers numbers = numbers_for(0, zero);
    int64_t i = 0;
    for (; i + at_once <= x.n; i += at_once) {
      F scale[vectors];
      take(scales, i, scale);
      const int32_t* from = x.at + i;
      Y* to = y + i;
      for (int64_t row = 0; row < x.rows; ++row, from += x.ld, to += ldy) tile<false>(from, scale, to, numbers);
    }
    if (i + half <= x.n) {
      F scale[vectors];
      take_part(scales, i, half, scale);
      half_rows(x.at + i, x.ld, x.rows, numbers, y + i, ldy,
                [&](const int32_t* at, int k) { return sum<false>(at, numbers) * scale[k]; });
      i += half;
    }
    if (i == x.n) return;
    for (int64_t row = 0; row < x.rows; ++row)
      run<false>(x.at + row * x.ld + i, {scales.at + i * scales.step, scales.step}, y + row * ldy + i, x.n - i,
                 numbers);
  }

  // What codes are made with that others are added to.
  struct Addition {
    Numbers first, second;
    F scale[vectors], factor, addend[vectors];

    // A whole number, limited: the first code less its zero point.
    F limited(F value) const {
      const F shift = S::set(12582912.0f);
      return Base::lesser(Base::greater(value, first.low), first.high) + shift - shift;
    }
    F value(const int32_t* x, int k) const { return limited(sum<false>(x, first) * scale[k]) * factor + addend[k]; }
    template <class Y>
    void tile(const int32_t* x, Y* y) const {
      F values[vectors];
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) values[k] = value(x + k * S::width, k);
      store_codes(values, second, y);
    }
  };

  template <class Y>
  static void requantize_and_add_rows(const SumRows& given, Scales scales, const AddedCodes& added, Y zero, Y* y,
                                      int64_t ldy) {
    const SumRows x = given;  // which nothing that is stored can change
    Addition addition;
    addition.first = numbers_for(0, static_cast<Y>(added.code_zero));
    addition.second = numbers_for(0, zero);
    addition.factor = S::set(added.factor);
    for (int64_t i = 0; i < x.n; i += at_once) {
      const int64_t count = std::min<int64_t>(at_once, x.n - i);
      take_part(scales, i, count, addition.scale);
      take_part({added.addends, 1}, i, count, addition.addend);
      const int32_t* from = x.at + i;
      Y* to = y + i;
      if (count == at_once) {
        for (int64_t row = 0; row < x.rows; ++row, from += x.ld, to += ldy) addition.tile(from, to);
        continue;
      }
      if (count == half) {
        half_rows(from, x.ld, x.rows, addition.second, to, ldy,
                  [&](const int32_t* at, int k) { return addition.value(at, k); });
        continue;
      }
      for (int64_t row = 0; row < x.rows; ++row, from += x.ld, to += ldy) {
        int32_t last[at_once] = {};
        Y codes[at_once];
        std::copy_n(from, count, last);
        addition.tile(last, codes);
        std::copy_n(codes, count, to);
      }
    }
  }

  static void scale_rows(const SumRows& given, Scales scales, const float* bias, float* y, int64_t ldy) {
    const SumRows x = given;  // which nothing that is stored can change
    int64_t i = 0;
    for (; i + at_once <= x.n; i += at_once) {
      F scale[vectors], own_bias[vectors] = {};
      take(scales, i, scale);
      if (bias) take({bias, 1}, i, own_bias);
      const int32_t* from = x.at + i;
      float* to = y + i;
      for (int64_t row = 0; row < x.rows; ++row, from += x.ld, to += ldy) {
#pragma GCC unroll 4
        for (int k = 0; k < vectors; ++k) {
          const F whole = sum<false>(from + k * S::width, Numbers{});
          S::store(to + k * S::width, whole * scale[k] + own_bias[k]);
        }
      }
    }
    for (; i + S::width <= x.n; i += S::width) {
      const F scale = scales.step == 0 ? S::set(*scales.at) : S::load(scales.at + i);
      const F own_bias = bias ? S::load(bias + i) : F{};
      for (int64_t row = 0; row < x.rows; ++row)
        S::store(y + row * ldy + i, sum<false>(x.at + row * x.ld + i, Numbers{}) * scale + own_bias);
    }
    for (; i < x.n; ++i) {
      for (int64_t row = 0; row < x.rows; ++row) {
        const auto whole = static_cast<float>(x.at[row * x.ld + i]);
        y[row * ldy + i] = whole * scales.at[i * scales.step] + (bias ? bias[i] : 0.0f);
      }
    }
  }

  static constexpr RequantizeKernels requantize_table() {
    return {Arch::isa,
            requantize<int32_t, uint8_t>,
            requantize<int32_t, int8_t>,
            requantize<float, uint8_t>,
            requantize<float, int8_t>,
            requantize_rows<uint8_t>,
            requantize_rows<int8_t>,
            requantize_and_add_rows<uint8_t>,
            requantize_and_add_rows<int8_t>,
            scale_rows};
  }
};

}  // namespace tenon::kernels
