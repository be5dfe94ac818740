// Some rows times a panel of codes; portable.cc and the files of instruction sets instantiate it.
#pragma once

#include <cstring>
#include <utility>

#include "kernels/gemm_nbits/tile.h"

namespace tenon::kernels {

// `Arch` has vectors F and I of `width` floats and 32-bit integers, `vectors` of which are a panel's columns, and
// Codes, which holds the codes of a group for as many columns. Besides:
//   codes<bits>(from, group, to)  a step's codes of this group; a step is two groups of 2 bits, or one
//   excess(bits)                  see NbitsKernels
//   digits(from)                  16 digits
//   dot<bits, lane>(sums, codes, digits)  adds the products with four of the digits
//   fma(a, b, c)                  rounded once
template <class Arch>
struct NbitsTiles {
  using F = typename Arch::F;
  using I = typename Arch::I;
  static constexpr int width = Arch::width, vectors = Arch::vectors, columns = width * vectors;

  template <int bits>
  static constexpr int groups_of_step = bits == 2 ? 2 : 1;
  template <int bits>
  static constexpr int bytes_of_step = groups_of_step<bits>* columns* nbits_group* bits / 8;

  template <class V>
  static V load(const void* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }

  static void store(float* to, F v) { std::memcpy(to, &v, sizeof v); }

  // Adds the products of a row with a group's codes; `four` counts the row's digits among those of all, by four.
  template <int bits, int four>
  [[gnu::always_inline]] static void add_row(const int8_t* digits, const typename Arch::Codes (&right)[vectors],
                                             I (&sums)[vectors]) {
    const auto left = Arch::digits(digits + four / 4 * 16);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[v] = Arch::template dot<bits, four % 4>(sums[v], right[v], left);
  }

  // Of few sums each is several, so that none waits for the one before; sums of products are exact.
  template <int Digits, int Rows>
  static constexpr int parts = Digits* Rows* vectors >= 4 ? 1 : 4 / (Digits * Rows * vectors);
  template <int Digits, int Rows>
  using Sums = I[parts<Digits, Rows>][Digits][Rows][vectors];

  template <int bits, int group, int Digits, int Rows, int... row>
  [[gnu::always_inline]] static void add_group(const uint8_t* codes, const int8_t* digits, int64_t digit_bytes,
                                               I (&sums)[Digits][Rows][vectors], std::integer_sequence<int, row...>) {
    typename Arch::Codes right[vectors];
    constexpr int step = group / groups_of_step<bits>;
    Arch::template codes<bits>(codes + step * bytes_of_step<bits>, group % groups_of_step<bits>, right);
#pragma GCC unroll 3
    for (int d = 0; d < Digits; ++d)
      (add_row<bits, group * Rows + row>(digits + d * digit_bytes, right, sums[d][row]), ...);
  }

  // Adds the products of 16 steps of k.
  template <int bits, int Digits, int Rows>
  [[gnu::always_inline]] static void multiply_add(const uint8_t* codes, const int8_t* digits, int64_t digit_bytes,
                                                  Sums<Digits, Rows>& sums) {
    constexpr auto rows = std::make_integer_sequence<int, Rows>{};
    constexpr int n = parts<Digits, Rows>;
    add_group<bits, 0>(codes, digits, digit_bytes, sums[0], rows);
    add_group<bits, 1>(codes, digits, digit_bytes, sums[1 % n], rows);
    add_group<bits, 2>(codes, digits, digit_bytes, sums[2 % n], rows);
    add_group<bits, 3>(codes, digits, digit_bytes, sums[3 % n], rows);
  }

  // The numbers whose digits, highest first, digit(0), digit(1), … are. Products with powers of two are exact.
  template <int Digits, class Get>
  static F put_together(Get digit) {
    F value = digit(0);
#pragma GCC unroll 2
    for (int d = 1; d < Digits; ++d) value = Arch::fma(value, F{} + 256.0f, digit(d));
    return value;
  }

  template <int bits, bool HasZeros, int Digits, int Rows>
  static void multiply(const NbitsTile& tile) {
    const uint8_t* panel = tile.panel;
    const int8_t* digits = tile.digits;
    const int32_t* starts = tile.starts;
    const float *row_scales = tile.scales, *totals = tile.totals;
    const int64_t digit_bytes = tile.run * Rows;
    // In memory where rows are many: registers are for the sums.
    F own[Rows == 1 ? vectors : 1] = {};
    for (int row = 0; Rows > 1 && row < Rows; ++row)
      std::memset(tile.out + row * tile.out_stride, 0, columns * sizeof(float));
    for (int64_t block = 0; block < tile.blocks; ++block) {
      F scales[vectors], zeros[vectors] = {};
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        scales[v] = load<F>(panel + v * sizeof(F));
        if constexpr (HasZeros) zeros[v] = load<F>(panel + (vectors + v) * sizeof(F));
      }
      panel += columns * sizeof(float) * (HasZeros ? 2 : 1);
      for (int64_t run = 0; run < tile.runs; ++run) {
        Sums<Digits, Rows> sums = {};
#pragma GCC unroll 3
        for (int d = 0; d < Digits; ++d) {
#pragma GCC unroll 8
          for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) sums[0][d][row][v] = I{} + starts[d * Rows + row];
          }
        }
        for (int64_t step = 0; step < tile.run; step += 4 * nbits_group) {
          multiply_add<bits, Digits, Rows>(panel, digits, digit_bytes, sums);
          panel += 4 / groups_of_step<bits> * bytes_of_step<bits>;
          digits += 4 * nbits_group * Rows;
        }
        digits += (Digits - 1) * digit_bytes;
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) {
            F value = put_together<Digits>([&](int d) {
              I sum = sums[0][d][row][v];
#pragma GCC unroll 4
              for (int part = 1; part < parts<Digits, Rows>; ++part) sum += sums[part][d][row][v];
              return (F)sum - nbits_base;
            });
            if constexpr (HasZeros) value = Arch::fma(zeros[v], F{} - totals[row], value);
            const F scale = scales[v] * row_scales[row];
            float* to = tile.out + row * tile.out_stride + v * width;
            if constexpr (Rows == 1)
              own[v] = Arch::fma(value, scale, own[v]);
            else
              store(to, Arch::fma(value, scale, load<F>(to)));
          }
        }
        starts += Digits * Rows;
        row_scales += Rows;
        totals += Rows;
      }
    }
    if constexpr (Rows == 1) std::memcpy(tile.out, own, sizeof own);
  }

  template <int bits, bool HasZeros, int Digits>
  static constexpr void fill(MultiplyNbits (&to)[4]) {
    to[0] = multiply<bits, HasZeros, Digits, 1>;
    to[1] = multiply<bits, HasZeros, Digits, 2>;
    to[2] = multiply<bits, HasZeros, Digits, 4>;
    if constexpr (nbits_tile_rows(Digits) == 8) to[3] = multiply<bits, HasZeros, Digits, 8>;
  }
  template <int bits>
  static constexpr void fill(MultiplyNbits (&to)[2][most_nbits_digits][4]) {
    fill<bits, false, 1>(to[0][0]);
    fill<bits, false, 2>(to[0][1]);
    fill<bits, false, 3>(to[0][2]);
    fill<bits, true, 1>(to[1][0]);
    fill<bits, true, 2>(to[1][1]);
    fill<bits, true, 3>(to[1][2]);
  }

  static constexpr NbitsKernels table(const char* name) {
    NbitsKernels result{name, columns, {Arch::excess(2), Arch::excess(4), Arch::excess(8)}, {}};
    fill<2>(result.multiply[0]);
    fill<4>(result.multiply[1]);
    fill<8>(result.multiply[2]);
    return result;
  }
};

}  // namespace tenon::kernels
