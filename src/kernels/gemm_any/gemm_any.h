// Matrix multiplication of the types that models multiply rarely.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace tenon::kernels {

// A row-major matrix whose rows start `ld` elements apart; `transposed` means that it is used transposed.
template <class T>
struct AnyMatrix {
  const T* data;
  int64_t ld;
  bool transposed = false;
};

// c[m, n] = a[m, k] * b[k, n] for T one of double, int32_t, uint32_t, int64_t and uint64_t; c overlaps neither a nor b.
// Integers wrap around.
template <class T>
void gemm_any(ThreadPool& pool, int64_t m, int64_t n, int64_t k, AnyMatrix<T> a, AnyMatrix<T> b, T* c, int64_t ldc);

}  // namespace tenon::kernels
