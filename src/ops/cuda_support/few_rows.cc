#include "ops/cuda_support/few_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/packs.h"

namespace tenon::ops {
namespace {

constexpr int64_t warps = 8, packs_of_block = 8;

// v: columns, depth. All sums of a column meet in one place, so that they are the same in every run.
constexpr std::string_view functions_text = R"cuda(
inline float sum_of_lanes(float x, int first) {
#pragma unroll
  for (int i = first; i < 32; i *= 2) x += __shfl_xor_sync(0xffffffffu, x, i);
  return x;
}
)cuda";

// A row of b has the weights of a column of the result: one for each warp.
constexpr std::string_view by_rows_of_b = R"cuda(
  const int columns = (int)v[0], packs = (int)v[1] / SIDE, lane = threadIdx.x % 32;
  const int column = blockIdx.x * WARPS + threadIdx.x / 32, own = least(column, columns - 1);
  const Some *left = (const Some*)a, *right = (const Some*)b + (i64)own * packs;
  float sums[ROWS] = {};
#pragma unroll 4
  for (int i = lane; i < packs; i += 32) {
    const Some weights = right[i];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      const Some numbers = left[row * packs + i];
#pragma unroll
      for (int e = 0; e < SIDE; ++e) sums[row] += widen(numbers.v[e]) * widen(weights.v[e]);
    }
  }
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
    Wide<T> r = sum_of_lanes(sums[row], 1);
    const int place = row * columns + own;
    EPILOGUE
    if (lane == row && column < columns) y[place] = narrow<T>(r);
  }
)cuda";

// Eight threads read a row of b, 16 bytes each; the others of the block have other rows.
constexpr std::string_view by_columns_of_b = R"cuda(
  __shared__ float parts[WARPS][ROWS][8 * SIDE];
  const int columns = (int)v[0], depth = (int)v[1], packs = columns / SIDE, lane = threadIdx.x % 32;
  const int pack = blockIdx.x * 8 + lane % 8;
  const Some* right = (const Some*)b + least(pack, packs - 1);
  float sums[ROWS][SIDE] = {};
#pragma unroll 8
  for (int k = threadIdx.x / 8; k < depth; k += WARPS * 4) {
    const Some weights = right[(i64)k * packs];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      const float number = widen(a[row * depth + k]);
#pragma unroll
      for (int e = 0; e < SIDE; ++e) sums[row][e] += number * widen(weights.v[e]);
    }
  }
#pragma unroll
  for (int row = 0; row < ROWS; ++row)
#pragma unroll
    for (int e = 0; e < SIDE; ++e) {
      const float sum = sum_of_lanes(sums[row][e], 8);
      if (lane < 8) parts[threadIdx.x / 32][row][lane * SIDE + e] = sum;
    }
  __syncthreads();
  for (int at = threadIdx.x; at < ROWS * 8 * SIDE; at += WARPS * 32) {
    const int row = at / (8 * SIDE), own = blockIdx.x * 8 * SIDE + at % (8 * SIDE), place = row * columns + own;
    if (own >= columns) continue;
    Wide<T> r = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) r += parts[warp][row][at % (8 * SIDE)];
    EPILOGUE
    y[place] = narrow<T>(r);
  }
)cuda";

CudaBlocks blocks_of(KernelRun& run, const MatMulShape& s, const CudaEpilogue& epilogue) {
  const int64_t side = 128 / bits_of(s.type);
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(s.columns, s.transpose_b ? warps : packs_of_block * side));
  grid.threads = warps * 32;
  const std::string text =
      epilogue.in_kernel(s.transpose_b ? by_rows_of_b : by_columns_of_b, "bias[own]", "residual[place]");
  return {
      run,
      "const T* a, const T* b, T* y, const T* bias, const T* residual",
      fmt::format("#define WARPS {}\n#define ROWS {}\n#define SIDE {}\ntypedef {} T;\ntypedef Pack<T, SIDE> Some;\n",
                  warps, s.rows, side, cuda::type_text(s.type)) +
          std::string(functions_text),
      text,
      {s.columns, s.depth},
      grid};
}

}  // namespace

bool CudaFewRows::takes(KernelRun& run, const MatMulShape& s) {
  constexpr int64_t most_rows = 4, most = int64_t{1} << 28;
  const int64_t side = 128 / bits_of(s.type);
  const bool is_taken_type =
      s.type == ElementType::float32 || s.type == ElementType::float16 || s.type == ElementType::bfloat16;
  return is_taken_type && s.rows > 0 && s.rows <= most_rows && s.columns > 0 && s.depth > 0 &&
         (s.transpose_b ? s.depth : s.columns) % side == 0 && std::max(s.columns, s.depth) < most &&
         alignment_of({run.input(0).raw(), run.input(1).raw()}) == 16;
}

CudaFewRows::CudaFewRows(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue)
    : blocks_(blocks_of(run, shape, epilogue)) {}

void CudaFewRows::run(KernelRun& run) const {
  blocks_.run(run, {run.input(0).raw(), run.input(1).raw(), run.output(0).raw(), CudaEpilogue::bias_of(run),
                    CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
