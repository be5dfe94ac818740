// Products of matrices of 8-bit codes, as sums in 32 bits.
#pragma once

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// `count` products of [m, k] by [k, n], less the zero points of both sides. Texts are expressions of `matrix`, `row` or
// `column`, and `k`; they may use `pointers`, what `functions` and `setup` declare, and v[4], v[5], …: the numbers.
struct CudaByteProduct {
  int64_t count = 1, m = 0, n = 0, k = 0;
  std::string pointers, functions;
  std::string setup;           // statements before all others, for one matrix
  std::string a_code, b_code;  // from -128 to 127: see signed_code
  std::string a_zero, b_zero;  // of a row of a and a column of b, on the same scale
  std::string finish;          // statements that store `sum`, a Sum, of `row` and `column`
  std::vector<int64_t> numbers;
  bool wide = false;  // sums in 64 bits, where 32 might not be enough

  CudaBlocks make(KernelRun& run) const;
};

// Codes of uint8 count from -128 on.
std::string signed_code(ElementType type, std::string_view code);
// The zero point number `index` of an input that may be missing.
std::string zero_point(const KernelRun& run, size_t input, ElementType of, std::string_view pointer,
                       std::string_view index);
// A pointer of its own for an input that may be missing: "const u8* name".
std::string byte_pointer(ElementType type, std::string_view name);

// Statements that store `sum`, plus `addend` if that is not empty, times `scale` as element `at` of y, which has 8
// bits.
std::string requantize_text(ElementType type, std::string_view addend, std::string_view scale, std::string_view zero,
                            std::string_view at);

}  // namespace tenon::ops
