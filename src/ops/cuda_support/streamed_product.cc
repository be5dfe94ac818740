#include "ops/cuda_support/streamed_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rounding.h"
#include "cuda/tensor_map.h"
#include "ops/cuda_support/box_copies.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t row_bytes = 128, most_stages = 4, most_shared = 226 << 10;

// Every group of four warps has tiles of BM pixels of its own, one after the other, and fetches STAGES of them ahead;
// the block shares the weights of BN outputs. A warp keeps its results in shared memory until they are written 16 bytes
// at a time; residuals come there one tile ahead. Floats are rounded to TF32: the weights where they are, once, pixels
// in registers, 32 channels at a time. v: rows, columns, tiles across, tiles down.
constexpr std::string_view product = R"cuda(
  // LANES elements are 16 bytes; of a row, 32 bytes are multiplied in a step.
  constexpr int LANES = 16 / sizeof(T), STEPS = (DEPTH + 2 * LANES - 1) / (2 * LANES), CHUNKS = (STEPS + 3) / 4;
  constexpr int STAGE = CHUNKS * BM * ROW, PARTS = BM / 64, OWN_ROWS = PARTS * 16, BUFFERS = HAS_RESIDUAL ? 2 : 1;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  __shared__ u64 weights_are_there, full[GROUPS * STAGES], empty[GROUPS * STAGES];
  const int rows = (int)v[0], columns = (int)v[1], across = (int)v[2], tiles = (int)v[3];
  const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, g = lane / 4, c = lane % 4;
  const int first_column = blockIdx.x % across * BN, sharing = gridDim.x / across;
  const int first_tile = blockIdx.x / across + group * sharing, step = sharing * GROUPS;
  u8 *const weights = shared, *const all_stages = weights + CHUNKS * BN * ROW;
  u8* const stages = all_stages + group * STAGES * STAGE;
  T* const held = (T*)(all_stages + GROUPS * STAGES * STAGE) + threadIdx.x / 32 * BUFFERS * OWN_ROWS * HELD;
  u64 *const own_full = full + group * STAGES, *const own_empty = empty + group * STAGES;

  auto fetch = [&](int i) {
    const int tile = first_tile + i * step, stage = i % STAGES;
    if (tile >= tiles) return;
    barrier_expect(own_full + stage, STAGE);
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
      copy_box(stages + stage * STAGE + chunk * BM * ROW, &a, own_full + stage, chunk * ROW / 2, tile * BM);
  };
  // Of the 16 bytes that a lane moves as its i-th of a tile.
  constexpr int MOVES = (OWN_ROWS * (BN / LANES) + 31) / 32, AT_ONCE = BN > 128 ? 4 : MOVES;
  auto row_of = [&](int i) { return (i * 32 + lane) / (BN / LANES); };
  auto column_of = [&](int i) { return (i * 32 + lane) % (BN / LANES) * LANES; };
  auto inner_row = [&](int i) { return row_of(i) / 16 * 64 + row_of(i) % 16; };
  auto place = [&](int i) { return inner_row(i) * columns + column_of(i); };
  auto origin = [&](int tile) { return (i64)(tile * BM + warp * 16) * columns + first_column; };
  auto is_inside = [&](int tile, int i) {
    return row_of(i) < OWN_ROWS && tile * BM + warp * 16 + inner_row(i) < rows && first_column + column_of(i) < columns;
  };
  auto fetch_residuals = [&](int tile, T* to) {
#pragma unroll AT_ONCE
    for (int i = 0; i < MOVES; ++i)
      copy_async_if<16>(to + row_of(i) * HELD + column_of(i), residual + origin(tile) + place(i), is_inside(tile, i));
    copy_async_commit();
  };

  if (threadIdx.x == 0) {
    barrier_make(&weights_are_there, 1);
    for (int i = 0; i < GROUPS * STAGES; ++i) {
      barrier_make(full + i, 1);
      barrier_make(empty + i, 4);
    }
    barriers_made();
    barrier_expect(&weights_are_there, CHUNKS * BN * ROW);
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
      copy_box(weights + chunk * BN * ROW, &b, &weights_are_there, chunk * ROW / 2, first_column);
  }
  __syncthreads();
  if (threadIdx.x % 128 == 0)
    for (int i = 0; i < STAGES; ++i) fetch(i);
  __syncwarp();
  if (HAS_RESIDUAL) fetch_residuals(first_tile, held);
  barrier_wait(&weights_are_there, 0);
#if IS_TF32
  for (int at = threadIdx.x; at < CHUNKS * BN * ROW / 16; at += GROUPS * 128)
#pragma unroll
    for (int e = 0; e < LANES; ++e) ((T*)weights)[at * LANES + e] = rounded_to_multiply(((T*)weights)[at * LANES + e]);
  group_sees_copies();
  __syncthreads();
#endif
  const Matrix right = matrix_at<ROW>(weights);

  for (int i = 0, tile = first_tile; tile < tiles; ++i, tile += step) {
    T* const own = held + i % BUFFERS * OWN_ROWS * HELD;
    if (HAS_RESIDUAL) fetch_residuals(tile + step, held + (i + 1) % BUFFERS * OWN_ROWS * HELD);
    const int stage = i % STAGES, parity = i / STAGES % 2;
    float sums[PARTS][BN / 8][4];
    barrier_wait(own_full + stage, parity);
#if IS_TF32
    const u8* const left = stages + stage * STAGE + (warp * 16 + g) * ROW + c * 4;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      u32 pixels[4][PARTS][4];
#pragma unroll
      for (int f = 0; f < 4; ++f)
#pragma unroll
        for (int m = 0; m < PARTS; ++m)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const u8* const from = left + (chunk * BM + m * 64 + r % 2 * 8) * ROW + ((f * 2 + r / 2) ^ g) * 16;
            pixels[f][m][r] = tf32_of(*(const float*)from);
          }
      group_begin();
#pragma unroll
      for (int f = 0; f < least(4, STEPS - chunk * 4); ++f)
#pragma unroll
        for (int m = 0; m < PARTS; ++m)
          group_by_rows_64xNx8<BN, ROW>(sums[m], pixels[f][m], right + (chunk * BN * ROW + f * 32), chunk + f > 0);
      group_commit();
      group_wait<0>();
    }
#else
    const Matrix left = matrix_at<ROW>(stages + stage * STAGE);
    group_begin();
#pragma unroll
    for (int f = 0; f < STEPS; ++f)
#pragma unroll
      for (int m = 0; m < PARTS; ++m)
        group_64xNx16<T, BN, ROW>(sums[m], left + ((f / 4 * BM + m * 64) * ROW + f % 4 * 32),
                                  right + (f / 4 * BN * ROW + f % 4 * 32), f > 0);
    group_commit();
    group_wait<0>();
#endif
#pragma unroll
    for (int m = 0; m < PARTS; ++m)
#pragma unroll
      for (int n = 0; n < BN / 8; ++n) group_done(sums[m][n]);
    __syncwarp();
    if (lane == 0) barrier_arrive(own_empty + stage);
    if (threadIdx.x % 128 == 0) {
      barrier_wait(own_empty + stage, parity);
      fetch(i + STAGES);
    }
    if (HAS_RESIDUAL) copy_async_wait<1>();
    __syncwarp();
#pragma unroll
    for (int n = 0; n < BN / 8; ++n) {
      Pack<T, 2> biases = {};
      if (HAS_BIAS) biases = *(const Pack<T, 2>*)(bias + least(first_column + n * 8 + c * 2, columns - 2));
#pragma unroll
      for (int m = 0; m < PARTS; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          T* const pair = own + (m * 16 + g + half * 8) * HELD + n * 8 + c * 2;
          Pack<T, 2> added = {};
          if (HAS_RESIDUAL) added = *(const Pack<T, 2>*)pair;
          float results[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            Wide<T> r = sums[m][n][half * 2 + e];
            EPILOGUE
            results[e] = r;
          }
          store_pair(pair, results);
        }
    }
    __syncwarp();
#pragma unroll AT_ONCE
    for (int k = 0; k < MOVES; ++k)
      if (is_inside(tile, k))
        *(Some*)(y + origin(tile) + place(k)) = *(const Some*)(own + row_of(k) * HELD + column_of(k));
    __syncwarp();
  }
)cuda";

int64_t element_bytes(const MatMulShape& s) { return bits_of(s.type) / 8; }
int64_t chunks_of(const MatMulShape& s) { return divide_up(s.depth * element_bytes(s), row_bytes); }

}  // namespace

int64_t CudaStreamedProduct::shared_bytes(const MatMulShape& s, const Tile& tile, bool has_residual) {
  const int64_t held = tile.rows * held_row(tile.columns, element_bytes(s)) * element_bytes(s) * (has_residual ? 2 : 1);
  return chunks_of(s) * tile.columns * row_bytes +
         tile.groups * (tile.stages * chunks_of(s) * tile.rows * row_bytes + held);
}

// As wide as needed so that all groups of all processors have as little to do as possible, one tile after the other.
CudaStreamedProduct::Tile CudaStreamedProduct::tile_of(const MatMulShape& s, bool has_residual, int64_t processors) {
  Tile best{};
  int64_t least = 0;
  for (int64_t most_columns : {128, 192, 96, 64}) {
    const int64_t across = divide_up(s.columns, most_columns), columns = round_up(divide_up(s.columns, across), 8);
    // Registers of a processor: those of the sums, and some others.
    const int64_t most_groups = columns > 128 ? 3 : 4;
    const int64_t most_rows = (columns <= 32 ? 256 : columns <= 64 ? 128 : 64) / (element_bytes(s) == 2 ? 1 : 2);
    for (int64_t rows = std::max<int64_t>(64, most_rows); rows >= 64; rows /= 2) {
      const int64_t tiles = divide_up(s.rows, rows), sharing = processors / across;
      if (sharing == 0) continue;
      Tile tile{rows, columns, std::min(most_groups, divide_up(tiles, sharing)), 2};
      while (tile.groups > 0 && shared_bytes(s, tile, has_residual) > most_shared) --tile.groups;
      if (tile.groups == 0 || (rows > 64 && tile.groups < 3)) continue;
      // A processor's groups share what it can do; the fewer they are, the less of that they use.
      const int64_t rounds = divide_up(tiles, sharing * tile.groups);
      const int64_t work = rounds * (tile.groups + 2) * (rows * (columns + 16) + 2048);
      // Other widths than the first one only where that is clearly better: others read pixels more often.
      if (best.groups == 0 || work * 20 < least * 19) best = tile, least = work;
    }
  }
  return with_stages(s, best, has_residual);
}

CudaStreamedProduct::Tile CudaStreamedProduct::with_stages(const MatMulShape& s, Tile tile, bool has_residual) {
  for (tile.stages = most_stages; tile.stages > 2; --tile.stages) {
    if (shared_bytes(s, tile, has_residual) <= most_shared) break;
  }
  return tile;
}

bool CudaStreamedProduct::takes(KernelRun& run, const MatMulShape& s) {
  constexpr int64_t most_depth = 256, most = int64_t{1} << 30;
  const void *bias = CudaEpilogue::bias_of(run), *residual = CudaEpilogue::residual_of(run);
  const int64_t alignment = alignment_of(
      {run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw()), bias, residual});
  const int64_t processors = queue_of(run).gpu().processors();
  const bool is_taken_type = s.type == ElementType::float16 || s.type == ElementType::bfloat16 || s.allow_tf32;
  return is_taken_type && queue_of(run).gpu().major() == 9 && s.transpose_b && s.depth * element_bytes(s) % 16 == 0 &&
         s.columns % 8 == 0 && alignment == 16 && s.depth > 0 && s.depth <= most_depth && s.rows > 0 && s.rows < most &&
         tile_of(s, residual != nullptr, processors).groups > 0;
}

CudaStreamedProduct::CudaStreamedProduct(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue)
    : shape_(shape),
      tile_(tile_of(shape, epilogue.for_library().residual, queue_of(run).gpu().processors())),
      blocks_(blocks_of(run, shape, epilogue, tile_)) {}

CudaBlocks CudaStreamedProduct::blocks_of(KernelRun& run, const MatMulShape& s, const CudaEpilogue& epilogue,
                                          const Tile& tile) {
  const bool has_residual = epilogue.for_library().residual;
  const int64_t across = divide_up(s.columns, tile.columns), down = divide_up(s.rows, tile.rows);
  const int64_t processors = queue_of(run).gpu().processors();
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(across * std::min(processors / across, divide_up(down, tile.groups)));
  grid.threads = static_cast<unsigned>(tile.groups * 128);
  grid.shared_bytes = static_cast<unsigned>(shared_bytes(s, tile, has_residual));
  const std::string constants =
      fmt::format("#define WARP_GROUPS 1\n#define BM {}\n#define BN {}\n#define GROUPS {}\n#define STAGES {}\n",
                  tile.rows, tile.columns, tile.groups, tile.stages) +
      fmt::format("#define DEPTH {}\n#define SHARED_BYTES {}\n#define HAS_BIAS {}\n#define HAS_RESIDUAL {}\n", s.depth,
                  grid.shared_bytes, epilogue.for_library().bias ? 1 : 0, has_residual ? 1 : 0) +
      fmt::format("#define HELD {}\n#define IS_TF32 {}\ntypedef {} T;\n", held_row(tile.columns, element_bytes(s)),
                  s.allow_tf32 ? 1 : 0, cuda::type_text(s.type)) +
      fmt::format("typedef Pack<T, {}> Some;\nconstexpr int ROW = {};\n", 16 / element_bytes(s), row_bytes);
  const std::string products =
      s.allow_tf32 ? tf32_group_products_text({}, {tile.columns}) : group_products_text({tile.columns}, {});
  const std::string text = epilogue.in_kernel(product, "biases.v[e]", "added.v[e]");
  return {run,
          "const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, T* y, const T* bias, "
          "const T* residual",
          fmt::format("{}{}{}{}", constants, tensor_core_functions, products, box_copies),
          text,
          {s.rows, s.columns, across, down},
          grid,
          1};
}

void CudaStreamedProduct::run(KernelRun& run) const {
  // By 16 bits, of which a float is two.
  auto map = [&](size_t input, int64_t rows, int64_t box_rows) {
    const int64_t sizes[] = {shape_.depth * element_bytes(shape_) / 2, rows}, box[] = {row_bytes / 2, box_rows};
    return cuda::tensor_map(queue_of(run).gpu(), run.input(input).raw(), sizes, box, true);
  };
  const cuda::TensorMap a = map(0, shape_.rows, tile_.rows), b = map(1, shape_.columns, tile_.columns);
  blocks_.run(run, {&a, &b}, {run.output(0).raw(), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
