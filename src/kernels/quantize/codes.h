// Arithmetic on 8-bit codes, each of which stands for (code - zero point) * scale.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// y = round((a - a_zero) * a_factor + (b - b_zero) * b_factor) + zero, saturated; in products there is but one factor:
// y = round((a - a_zero) * (b - b_zero) * a_factor) + zero.
struct CodeArithmetic {
  int32_t a_zero, b_zero, zero;
  float a_factor, b_factor;
};

// An array of codes, or one code for all elements where step is 0.
template <class T>
struct Codes {
  const T* at;
  int64_t step;
};

// Single-threaded: callers split the arrays. y may be one of the others.
void add_codes(const CodeArithmetic& arithmetic, Codes<uint8_t> a, Codes<uint8_t> b, uint8_t* y, int64_t n);
void add_codes(const CodeArithmetic& arithmetic, Codes<int8_t> a, Codes<int8_t> b, int8_t* y, int64_t n);
void multiply_codes(const CodeArithmetic& arithmetic, Codes<uint8_t> a, Codes<uint8_t> b, uint8_t* y, int64_t n);
void multiply_codes(const CodeArithmetic& arithmetic, Codes<int8_t> a, Codes<int8_t> b, int8_t* y, int64_t n);

// y[i] = table[x[i]], of 256 entries.
void look_up_codes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n);

// sums[c] += the rows' codes at c, for c < n; rows are `n` apart.
void sum_codes(const uint8_t* rows, int64_t count, int64_t n, int32_t* sums);
void sum_codes(const int8_t* rows, int64_t count, int64_t n, int32_t* sums);

// y[i] = x[i] with its highest bit flipped: signed codes that are 128 less than unsigned ones, or the reverse.
void flip_codes(const uint8_t* x, uint8_t* y, int64_t n);

// y[i] = the greatest rows[r][i] of `count` rows, at least one; y is none of them.
void greatest_codes(const uint8_t* const* rows, int64_t count, int64_t n, uint8_t* y);
void greatest_codes(const int8_t* const* rows, int64_t count, int64_t n, int8_t* y);

struct CodeKernels {
  template <class T>
  using Binary = void (*)(const CodeArithmetic& arithmetic, Codes<T> a, Codes<T> b, T* y, int64_t n);
  Isa isa;
  Binary<uint8_t> add_uint8, multiply_uint8;
  Binary<int8_t> add_int8, multiply_int8;
  void (*look_up)(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n);
};

TENON_ISA_TABLES(CodeKernels, code_kernels)

}  // namespace tenon::kernels
