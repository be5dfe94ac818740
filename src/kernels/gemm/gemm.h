// Matrix multiplication of floats.
#pragma once

#include <cstdint>
#include <limits>

#include "base/cpu_features.h"
#include "base/function_ref.h"
#include "base/packed_storage.h"
#include "base/thread_pool.h"
#include "kernels/scratch.h"

namespace tenon::kernels {

// y[i] = f(x[i]) for i < n; y may be x.
using FloatFunction = void (*)(const float* x, float* y, int64_t n);

// What a multiplication stores: activation(clamp(alpha * product + beta * addend + residual, lo, hi)). NaN stays NaN.
struct GemmEpilogue {
  float alpha = 1;
  float beta = 1;
  // Element (i, j) is addend[i * addend_row_stride + j * addend_column_stride]: a stride of 0 broadcasts a bias.
  // It may be the output itself, with the output's strides. Null adds nothing.
  const float* addend = nullptr;
  int64_t addend_row_stride = 0;
  int64_t addend_column_stride = 0;
  float lo = -std::numeric_limits<float>::infinity();  // Relu is lo = 0
  float hi = std::numeric_limits<float>::infinity();
  const float* residual = nullptr;  // laid out as the output is, but other memory
  FloatFunction activation = nullptr;
};

// A row-major matrix whose rows start `ld` floats apart; `transposed` means that it is used transposed.
struct GemmMatrix {
  const float* data;
  int64_t ld;
  bool transposed = false;
};

enum class GemmSide { left, right };

// A constant matrix rearranged for the micro-kernels of the instruction set in use when it was packed.
class PackedMatrix {
 public:
  // `rows` and `columns` of the matrix as used, after transposition.
  PackedMatrix(ThreadPool& pool, GemmSide side, int64_t rows, int64_t columns, GemmMatrix matrix,
               PackedStorage& storage = fresh_storage());

  GemmSide side() const { return side_; }
  int64_t rows() const { return side_ == GemmSide::left ? lanes_ : k_; }
  int64_t columns() const { return side_ == GemmSide::left ? k_ : lanes_; }
  size_t bytes() const { return buffer_.size(); }
  Isa isa() const { return isa_; }

 private:
  friend class PackedPanels;
  GemmSide side_;
  Isa isa_;
  int64_t lanes_;
  int64_t k_;
  int width_;
  PackedBuffer buffer_;
};

// The instruction set gemm uses now.
Isa gemm_isa();

// c[m, n] = epilogue(a[m, k] * b[k, n]); c is row-major with rows ldc floats apart and overlaps neither a nor b.
void gemm(ThreadPool& pool, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue = {});
// The same with the right (n and k come from it) or the left (m and k) side packed ahead. A row times weights may go
// `backwards` through them: what it reads first then is what the one before read last, and still in a cache.
void gemm(ThreadPool& pool, int64_t m, GemmMatrix a, const PackedMatrix& b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue = {}, bool backwards = false);
void gemm(ThreadPool& pool, int64_t n, const PackedMatrix& a, GemmMatrix b, float* c, int64_t ldc,
          const GemmEpilogue& epilogue = {});

// Columns that a packed right side keeps together.
int64_t gemm_panel_columns();

// The columns [first, last) of a product with a packed right side, in the calling thread. `first` is a multiple of
// gemm_panel_columns(), `last` too or the number of columns; c and the epilogue are those of column `first` on.
void gemm_columns(int64_t m, GemmMatrix a, const PackedMatrix& b, int64_t first, int64_t last, float* c, int64_t ldc,
                  const GemmEpilogue& epilogue = {}, bool backwards = false);

// One multiplication of a batch; the leading dimensions and transpositions are the batch's.
struct GemmBatchItem {
  const float* a;
  const float* b;
  float* c;
  const float* addend = nullptr;
};

// `count` multiplications of one shape, without residual. `item(i)` gives the pointers of number i and may be called
// from any thread; pointers in `a`, `b` and `epilogue` are ignored. Shared between the threads by item, or inside items
// when few.
void gemm_batch(ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t k, GemmMatrix a, GemmMatrix b,
                int64_t ldc, const GemmEpilogue& epilogue, FunctionRef<GemmBatchItem(int64_t)> item);

}  // namespace tenon::kernels
