// Multiplication of matrices of 8-bit integers, with 32-bit sums that wrap around.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm_int8/panels.h"
#include "kernels/quantize/requantize.h"

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

// A part of a product. Its rows start `ld` apart.
struct SumsBlock {
  int64_t row, column;
  int64_t rows, columns;
  const int32_t* sums;
  int64_t ld;
};

// Sums that become codes as requantize_rows makes them, with a scale for each column, or requantize_and_add_rows where
// there are addends. Rows of y are ldy apart.
struct CodesOfSums {
  const float* scales;
  bool is_signed;
  int32_t zero;
  uint8_t* y;
  int64_t ldy;
  AddedCodes added = {};  // without addends, nothing is added

  void operator()(const SumsBlock& block) const;
};

// Sums that are kept as they are. Rows of c are ldc apart.
struct StoredSums {
  int32_t* c;
  int64_t ldc;

  int32_t* at(int64_t row, int64_t column) const { return c + row * ldc + column; }
  void operator()(const SumsBlock& block) const {
    for (int64_t i = 0; i < block.rows; ++i)
      std::copy_n(block.sums + i * block.ld, block.columns, at(block.row + i, block.column));
  }
};

// What becomes of the sums while they are in the first cache. It is called for each block once, by several threads.
class FinishSums {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FinishSums> &&
           std::is_invocable_v<Callable&, const SumsBlock&>)
      FinishSums(Callable&& callable)  // NOLINT(bugprone-forwarding-reference-overload): constrained
      : finish_(callable) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Callable>, CodesOfSums>) codes_ = &callable;
    if constexpr (std::is_same_v<std::remove_cvref_t<Callable>, StoredSums>) stored_ = &callable;
  }

  void operator()(const SumsBlock& block) const { finish_(block); }
  // What kernels may make of them by themselves; null for other ends.
  const CodesOfSums* codes() const { return codes_; }
  // Where sums may be written at once; null for other ends.
  const StoredSums* stored() const { return stored_; }

 private:
  FunctionRef<void(const SumsBlock& block)> finish_;
  const CodesOfSums* codes_ = nullptr;
  const StoredSums* stored_ = nullptr;
};

// (a[m, k] - a_zeros by row) * (b[k, n] - b_zeros by column), plus `column_bias` unless it is null. With `pool` null it
// runs in the caller.
void gemm_int8(ThreadPool* pool, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteZeroPoints a_zeros, ByteMatrix b,
               ByteZeroPoints b_zeros, const int32_t* column_bias, FinishSums finish);
// The same with the right side packed ahead.
void gemm_int8(ThreadPool* pool, int64_t m, ByteMatrix a, ByteZeroPoints a_zeros, const PackedBytes& b,
               const int32_t* column_bias, FinishSums finish);
// A `finish` that stores the sums; rows of c are ldc apart.
inline StoredSums stored_sums(int32_t* c, int64_t ldc) { return {c, ldc}; }

// c = left * right, plus `row_bias` (one for each row) unless it is null. With `pool` null it runs in the caller.
void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* row_bias, int32_t* c,
                     int64_t ldc);
// left * right, plus `column_bias` (one for each column) unless it is null, is handed to `finish`.
void multiply_panels(ThreadPool* pool, const BytePanels& a, const BytePanels& b, const int32_t* column_bias,
                     FinishSums finish);

}  // namespace tenon::kernels
