// Rows of floats times a constant matrix of codes of 2, 4 or 8 bits, which stand for (code - zero point) * scale. Both
// are those of a block: some consecutive steps of k of one column.
//
// The codes are multiplied as they are. For that, each run of a row becomes a scale and whole numbers, whose digits to
// the base of 256 are bytes: one digit rounds to 8 bits, three are as exact as floats. Sums of products of bytes are
// exact, and so the result has the same bits on every instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "base/packed_storage.h"
#include "base/thread_pool.h"
#include "kernels/gemm_nbits/tile.h"

namespace tenon::kernels {

// The kernels that products use now.
const NbitsKernels& nbits_kernels();

// The steps of k that share a scale in a row: a divisor of a block, which is a multiple of 16.
int64_t nbits_run(int64_t block);

// A matrix of n columns and k rows, of which each column's codes follow each other, the lowest bits of a byte first.
struct NbitsMatrix {
  int64_t n, k;
  int bits;                  // 2, 4 or 8
  int64_t block;             // a multiple of 16, and of 128 if it is larger than that
  const uint8_t* codes;      // [n][blocks][block * bits / 8], the last block filled up
  const float* scales;       // [n][blocks]
  bool has_zeros;            // else zero points are 2^(bits - 1)
  const uint8_t* zeros;      // [n][blocks], one to a byte; or null:
  const float* float_zeros;  // [n][blocks]
  int64_t blocks() const { return (k + block - 1) / block; }
};

// The matrix in panels of columns: for each block the scales, the zero points and the codes, as the kernels read them.
class NbitsWeights {
 public:
  NbitsWeights(ThreadPool& pool, const NbitsMatrix& matrix, const NbitsKernels& kernels = nbits_kernels(),
               PackedStorage& storage = fresh_storage());
  size_t bytes() const { return buffer_.size(); }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }

 private:
  friend class NbitsProduct;
  const NbitsKernels* kernels_;
  int64_t n_, k_, block_, blocks_;
  int bits_;
  bool has_zeros_;
  int64_t panel_bytes_;
  PackedBuffer buffer_;
};

// y[m, n] = a[m, k] * weights + bias, which is by column or null; `digits` of 1 to 3. A row with numbers that are not
// finite becomes NaN.
void gemm_nbits(ThreadPool& pool, int digits, int64_t m, const float* a, const NbitsWeights& weights, const float* bias,
                float* y);

}  // namespace tenon::kernels
