// What multiplies tiles for gemm_any.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// Rows of the left side, or columns of the right one.
template <class T>
struct AnyLines {
  const T* data;
  int64_t count, stride, step;
};

template <class T>
struct AnyTile {
  int rows, columns;
  // to[p * rows + i] = number `step + p` of line `first + i` for p < steps, or zero if there is no such line. The same
  // with columns.
  void (*pack_rows)(const AnyLines<T>& lines, int64_t first, int64_t step, int64_t steps, T* to);
  void (*pack_columns)(const AnyLines<T>& lines, int64_t first, int64_t step, int64_t steps, T* to);
  // c[i * ldc + j] = the sum over p < k of a[p * rows + i] * b[p * ldb + j], added to what is there if `adds`. Only the
  // first `count` rows need be computed; others may be.
  void (*multiply)(int64_t count, int64_t k, const T* a, const T* b, int64_t ldb, bool adds, T* c, int64_t ldc);
  // The same for all rows of the left side where they are: number p of row i is a[i * lda + p]. Null where that would
  // be slower than packing them.
  void (*multiply_in_place)(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, bool adds, T* c, int64_t ldc);
};

struct GemmAnyKernels {
  Isa isa;
  AnyTile<double> f64;
  AnyTile<uint32_t> u32;
  AnyTile<uint64_t> u64;

  template <class T>
  const AnyTile<T>& tile() const {
    if constexpr (std::is_same_v<T, double>)
      return f64;
    else if constexpr (std::is_same_v<T, uint32_t>)
      return u32;
    else
      return u64;
  }
};

TENON_ISA_TABLES(GemmAnyKernels, gemm_any_kernels)

}  // namespace tenon::kernels
