// Computes with vectors of codes; neon.cc, avx2.cc, avx512.cc and portable.cc instantiate it.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/quantize/codes.h"
#include "kernels/quantize/quantize_kernel.h"

namespace tenon::kernels {

template <class Arch>
struct CodeArrays : QuantizeArrays<Arch> {
  using Base = QuantizeArrays<Arch>;
  using S = typename Base::S;
  using F = typename Base::F;
  using I = typename Base::I;
  using Base::at_once, Base::vectors;

  // `at_once` codes less `zero`.
  template <class T>
  static void centered(const T* from, int32_t zero, F (&to)[vectors]) {
    if constexpr (requires { Arch::centered(from, zero, to); }) {
      Arch::centered(from, zero, to);
    } else {
      using Bytes [[gnu::vector_size(S::width)]] = T;
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) {
        Bytes bytes;
        std::memcpy(&bytes, from + k * S::width, sizeof bytes);
        to[k] = S::to_float(__builtin_convertvector(bytes, I) - zero);
      }
    }
  }

  struct Numbers {
    CodeArithmetic arithmetic;
    F low, high;
  };

  // Products of two codes are whole numbers that floats hold exactly.
  template <bool Multiplies>
  static I code(F a, F b, const Numbers& numbers) {
    const CodeArithmetic& by = numbers.arithmetic;
    F value = Multiplies ? a * b * S::set(by.a_factor) : a * S::set(by.a_factor) + b * S::set(by.b_factor);
    // Adding it leaves no bits for a fraction, and the whole part in the lowest bits.
    const F shift = S::set(12582912.0f);
    value = Base::lesser(Base::greater(value, numbers.low), numbers.high);
    return S::bits(value + shift) - (S::bits(shift) - by.zero);
  }

  template <bool Multiplies, class T>
  static void tile(Codes<T> a, Codes<T> b, T* y, const Numbers& numbers) {
    if constexpr (Multiplies && requires { Arch::multiply(a.at, b.at, y, numbers.arithmetic); }) {
      if (a.step == 1 && b.step == 1) return Arch::multiply(a.at, b.at, y, numbers.arithmetic);
    }
    if constexpr (!Multiplies && requires { Arch::add(a.at, b.at, y, numbers.arithmetic); }) {
      if (a.step == 1 && b.step == 1) return Arch::add(a.at, b.at, y, numbers.arithmetic);
    }
    F first[vectors], second[vectors];
    I codes[vectors];
    const auto take = [](Codes<T> from, int32_t zero, F(&to)[vectors]) {
      if (from.step == 0)
        std::fill_n(to, vectors, S::set(static_cast<float>(*from.at - zero)));
      else
        centered(from.at, zero, to);
    };
    take(a, numbers.arithmetic.a_zero, first);
    take(b, numbers.arithmetic.b_zero, second);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) codes[k] = code<Multiplies>(first[k], second[k], numbers);
    Base::narrow(codes, y);
  }

  template <bool Multiplies, class T>
  static void binary(const CodeArithmetic& arithmetic, Codes<T> a, Codes<T> b, T* y, int64_t n) {
    using Limits = std::numeric_limits<T>;
    const Numbers numbers{arithmetic, S::set(static_cast<float>(Limits::min() - arithmetic.zero)),
                          S::set(static_cast<float>(Limits::max() - arithmetic.zero))};
    int64_t i = 0;
    for (; i + at_once <= n; i += at_once, a.at += at_once * a.step, b.at += at_once * b.step)
      tile<Multiplies>(a, b, y + i, numbers);
    if (i == n) return;
    T last[3][at_once] = {};
    const auto copy = [&](Codes<T> from, T* to) { std::copy_n(from.at, from.step == 0 ? 1 : n - i, to); };
    copy(a, last[0]);
    copy(b, last[1]);
    tile<Multiplies>(Codes<T>{last[0], a.step}, Codes<T>{last[1], b.step}, last[2], numbers);
    std::copy_n(last[2], n - i, y + i);
  }

  static void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
    if constexpr (requires { Arch::look_up(table, x, y, n); }) {
      Arch::look_up(table, x, y, n);
    } else {
      uint8_t own[256];  // which y is no part of
      std::copy_n(table, 256, own);
      for (int64_t i = 0; i < n; ++i) y[i] = own[x[i]];
    }
  }

  static constexpr CodeKernels code_table() {
    return {Arch::isa, binary<false, uint8_t>, binary<true, uint8_t>, binary<false, int8_t>, binary<true, int8_t>,
            look_up};
  }
};

}  // namespace tenon::kernels
