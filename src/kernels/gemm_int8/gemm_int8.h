// Multiplication of matrices of 8-bit integers, with 32-bit sums that wrap around.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm_int8/panels.h"

namespace tenon::kernels {

// The kernels that products use now.
const Int8Kernels& int8_kernels();

// A constant side, rearranged for the kernels in use when it was packed.
class PackedBytes {
 public:
  // The right side has `lanes` columns, the left one `lanes` rows.
  PackedBytes(ThreadPool& pool, GemmSide side, int64_t lanes, int64_t k, ByteMatrix matrix, ByteZeroPoints zeros,
              const Int8Kernels& kernels = int8_kernels(), PackedStorage& storage = fresh_storage());
  const BytePanels& panels() const { return panels_; }

 private:
  PackedBuffer buffer_;
  BytePanels panels_;
};

// c[m, n] = (a[m, k] - a_zeros by row) * (b[k, n] - b_zeros by column); rows of c are ldc apart.
void gemm_int8(ThreadPool& pool, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteZeroPoints a_zeros, ByteMatrix b,
               ByteZeroPoints b_zeros, int32_t* c, int64_t ldc);
// The same with the right side packed ahead.
void gemm_int8(ThreadPool& pool, int64_t m, ByteMatrix a, ByteZeroPoints a_zeros, const PackedBytes& b, int32_t* c,
               int64_t ldc);

// c = left * right, plus `row_bias` (one for each row) unless it is null. With `pool` null it runs in the caller.
void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* row_bias, int32_t* c,
                     int64_t ldc);

}  // namespace tenon::kernels
