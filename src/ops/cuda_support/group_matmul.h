// Products of large matrices by groups of four warps, on GPUs of compute capability 9.0, with all that follows done
// while results are stored.
#pragma once

#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/matmul_shape.h"

namespace tenon::ops {

// What a group of warps works on at a time.
struct GroupMatMulTile {
  int64_t rows = 128, columns = 128;
};

class CudaGroupMatMul {
 public:
  // float16 and bfloat16, rows of all matrices that begin at multiples of 16 bytes. Inputs are those of a FusedMatMul.
  static bool takes(KernelRun& run, const MatMulShape& shape);
  // Those that may be the fastest: large ones where there is work for the whole GPU nonetheless.
  static std::vector<GroupMatMulTile> tiles(const MatMulShape& shape, int processors);

  CudaGroupMatMul(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue, const GroupMatMulTile& tile);
  void run(KernelRun& run) const;

 private:
  MatMulShape shape_;
  GroupMatMulTile tile_;
  CudaBlocks blocks_;
};

// How many columns of a and rows of b are fetched at a time.
inline constexpr int64_t group_matmul_depth = 64;

// The kernel: `fetches` is text with a struct Fetches that has them fetched, which may use `more_numbers` from v[8] on.
// Its parameters are the maps of a and b, then the addresses of y, bias and residual.
CudaBlocks group_matmul_blocks(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue,
                               const GroupMatMulTile& tile, std::string_view fetches,
                               std::span<const int64_t> more_numbers);

}  // namespace tenon::ops
