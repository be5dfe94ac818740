#include "ops/cuda_support/group_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/rounding.h"
#include "cuda/tensor_map.h"
#include "ops/cuda_support/box_copies.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t depth_of_stage = group_matmul_depth, row_bytes = depth_of_stage * 2, threads = 384, held_row = 72;

// Which tiles a block has, one after the other: every gridDim-th of the whole ones, then those that have at most half
// of their rows. These go to the blocks that have one whole tile less, where two each are enough. v: rows, columns,
// depth, tiles across, whole tiles, others, blocks with one more whole tile, blocks that share the others.
constexpr std::string_view schedule = R"cuda(
struct OwnTiles {
  u32 across, whole, all, first_other, sharing;

  OwnTiles(const i64* v) : across((u32)v[3]), sharing((u32)v[7]) {
    const u32 wholes = (u32)v[4], others = (u32)v[5], place = (blockIdx.x + gridDim.x - (u32)v[6]) % gridDim.x;
    whole = blockIdx.x < wholes ? (wholes - blockIdx.x - 1) / gridDim.x + 1 : 0;
    all = whole + (place < least(sharing, others) ? (others - place - 1) / sharing + 1 : 0);
    first_other = wholes + place;
  }
  u32 number(u32 i) const { return i < whole ? blockIdx.x + i * gridDim.x : first_other + (i - whole) * sharing; }
};
template <int N> struct Count { static constexpr int value = N; };
)cuda";

// What a stage is filled with, for a tile that begins at `row` and `column`: 64 columns of a and rows of b.
constexpr std::string_view from_matrices = R"cuda(
struct Fetches {
  int row, column, depth = 0;

  Fetches(const i64*, int first_row, int first_column) : row(first_row), column(first_column) {}
  void fetch_left(u8* to, const TensorMap* a, u64* barrier) const { copy_box(to, a, barrier, depth, row); }
  void fetch_right(u8* to, const TensorMap* b, u64* barrier) const {
    if (TRANSPOSED)
      copy_box(to, b, barrier, depth, column);
    else
      for (int slab = 0; slab < BN / 64; ++slab) copy_box(to + slab * 64 * ROW, b, barrier, column + slab * 64, depth);
  }
  void go_on() { depth += 64; }
};
)cuda";

// A thread of the first group fetches STAGES pieces of 64 columns of a and rows of b ahead. The other two groups
// multiply, each its own tiles, one after the other, so that one stores results while the other multiplies. Results go
// through shared memory, 16 rows and 64 columns of a warp at a time, so that they are written, and residuals read, 16
// bytes at a time.
constexpr std::string_view product = R"cuda(
  constexpr int STAGE = A_BYTES + BN * ROW, HELD = 72;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  __shared__ u64 full[STAGES], empty[STAGES], turns[2];
  const int rows = (int)v[0], columns = (int)v[1], steps = ((int)v[2] + 63) / 64;
  const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
  const OwnTiles tiles(v);
  if (threadIdx.x == 0) {
    prefetch_map(&a);
    prefetch_map(&b);
    for (int i = 0; i < STAGES; ++i) {
      barrier_make(full + i, 1);
      barrier_make(empty + i, 4);
    }
    barrier_make(turns, 4);
    barrier_make(turns + 1, 4);
    barriers_made();
  }
  __syncthreads();

  if (group == 0) {
    change_registers<40, false>();
    if (threadIdx.x > 0) return;
    auto fetches_of = [&](u32 i) {
      const u32 number = tiles.number(i);
      return Fetches(v, number / tiles.across * BM, number % tiles.across * BN);
    };
    // What is constant is fetched before earlier kernels have ended, but not so much that the rest has to wait for it.
    const int early = HAS_FIXED_B && tiles.all > 0 ? least(2, steps) : 0;
    Fetches first = fetches_of(0);
    for (int step = 0; step < early; ++step, first.go_on()) {
      barrier_expect(full + step, STAGE);
      first.fetch_right(shared + step * STAGE + A_BYTES, &b, full + step);
    }
    begin_kernel();
    int stage = 0;
    u32 parity = 1;
    for (u32 i = 0; i < tiles.all; ++i) {
      Fetches fetches = fetches_of(i);
      for (int step = 0; step < steps; ++step, fetches.go_on()) {
        u8* const to = shared + stage * STAGE;
        if (i > 0 || step >= early) {
          barrier_wait(empty + stage, parity);
          barrier_expect(full + stage, STAGE);
          fetches.fetch_right(to + A_BYTES, &b, full + stage);
        }
        fetches.fetch_left(to, &a, full + stage);
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
    }
    return;
  }

  change_registers<232, true>();
  begin_kernel();
  const int own = group - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, g = lane / 4, c = lane % 4;
  T* const held = (T*)(shared + STAGES * STAGE) + (own * 4 + warp) * 16 * HELD;
  int done = own * steps;  // pieces that were multiplied before, by both groups

  // The first PARTS times 64 rows of a tile.
  auto multiply = [&](auto parts, u32 number, u32 turn) {
    constexpr int PARTS = decltype(parts)::value;
    const int first_row = number / tiles.across * BM, first_column = number % tiles.across * BN;
    float sums[PARTS][BN / 8][4];
    Pack<T, 2> biases[BN / 8] = {};
#pragma unroll
    for (int n = 0; n < BN / 8; ++n)
      if (HAS_BIAS) biases[n] = *(const Pack<T, 2>*)(bias + least(first_column + n * 8 + c * 2, columns - 2));
    // What of a tile goes through shared memory together, one piece after the other.
    constexpr int PIECES = BN / 64 * PARTS;
    auto row_at = [&](int piece) { return first_row + piece % PARTS * 64 + warp * 16; };
    auto column_at = [&](int piece) { return first_column + piece / PARTS * 64; };
    // Of the 16 bytes that a lane moves as its i-th.
    auto row_of = [&](int i) { return i * 4 + lane / 8; };
    auto is_inside = [&](int piece, int i) {
      return row_at(piece) + row_of(i) < rows && column_at(piece) + lane % 8 * 8 < columns;
    };
    auto place = [&](int piece, int i) {
      return (i64)(row_at(piece) + row_of(i)) * columns + column_at(piece) + lane % 8 * 8;
    };
    auto held_place = [&](int i) { return (Some*)(held + row_of(i) * HELD + lane % 8 * 8); };
    // Two pieces ahead: the first ones while the tile is multiplied.
    Some residuals[2][4];
    auto read_residuals = [&](int piece) {
#pragma unroll
      for (int i = 0; i < 4 && HAS_RESIDUAL && piece < PIECES; ++i)
        residuals[piece % 2][i] = read_or_zeros((const Some*)(residual + place(piece, i)), is_inside(piece, i));
    };
    read_residuals(0);
    read_residuals(1);
    barrier_wait(turns + own, turn % 2 ^ (own == 0));
    int stage = done % STAGES, before = 0;
    u32 parity = done / STAGES % 2;
    for (int step = 0; step < steps; ++step) {
      barrier_wait(full + stage, parity);
      const u8* const own_stage = shared + stage * STAGE;
      const Matrix left = matrix_at<ROW>(own_stage);
#if TRANSPOSED
      const Matrix right = matrix_at<ROW>(own_stage + A_BYTES);
#else
      const Matrix right = slabs_at<64 * ROW>(own_stage + A_BYTES);
#endif
      group_begin();
#pragma unroll
      for (int f = 0; f < 4; ++f)
#pragma unroll
        for (int m = 0; m < PARTS; ++m) {
          const Matrix from = left + (m * 64 * ROW + f * 32);
#if TRANSPOSED
          group_64xNx16<T, BN, ROW>(sums[m], from, right + f * 32, step + f > 0);
#else
          group_by_slabs_64xNx16<T, BN, 64 * ROW>(sums[m], from, right + f * 16 * ROW, step + f > 0);
#endif
        }
      group_commit();
      if (step > 0) {
        group_wait<1>();
        if (lane == 0) barrier_arrive(empty + before);
      }
      before = stage;
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    if (lane == 0) barrier_arrive(turns + 1 - own);
    group_wait<0>();
    if (lane == 0) barrier_arrive(empty + before);
#pragma unroll
    for (int m = 0; m < PARTS; ++m)
#pragma unroll
      for (int n = 0; n < BN / 8; ++n) group_done(sums[m][n]);
    done += 2 * steps;

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
      if (HAS_RESIDUAL) {
#pragma unroll
        for (int i = 0; i < 4; ++i) *held_place(i) = residuals[piece % 2][i];
        read_residuals(piece + 2);
        __syncwarp();
      }
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          T* const pair = held + (g + half * 8) * HELD + n * 8 + c * 2;
          const int column = piece / PARTS * 8 + n;
          Pack<T, 2> added = {};
          if (HAS_RESIDUAL) added = *(const Pack<T, 2>*)pair;
          float results[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            Wide<T> r = sums[piece % PARTS][column][half * 2 + e];
            EPILOGUE
            results[e] = r;
          }
          *(u32*)pair = pair_of<T>(results[0], results[1]);
        }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (is_inside(piece, i)) *(Some*)(y + place(piece, i)) = *held_place(i);
      __syncwarp();
    }
  };
  u32 i = own, turn = 0;
  for (; i < tiles.whole; i += 2, ++turn) multiply(Count<BM / 64>(), tiles.number(i), turn);
  for (; i < tiles.all; i += 2, ++turn) multiply(Count<1>(), tiles.number(i), turn);
)cuda";

int64_t stage_bytes(const GroupMatMulTile& tile) { return (tile.rows + tile.columns) * row_bytes; }
int64_t held_bytes() { return 8 * 16 * held_row * 2; }

int64_t stages_of(const GroupMatMulTile& tile) {
  constexpr int64_t shared_bytes = 226 << 10, most = 8;
  return std::min(most, (shared_bytes - held_bytes()) / stage_bytes(tile));
}

// What the schedule is made from: tiles across, whole ones, others, blocks with one more whole tile, blocks that share
// the others.
std::array<int64_t, 5> schedule_of(const MatMulShape& s, const GroupMatMulTile& tile, int64_t processors,
                                   int64_t& blocks) {
  const int64_t across = divide_up(s.columns, tile.columns), rest = s.rows % tile.rows;
  const bool has_others = tile.rows > 64 && rest > 0 && rest <= tile.rows / 2;
  const int64_t whole = across * (s.rows / tile.rows + (rest > 0 && !has_others ? 1 : 0));
  const int64_t others = has_others ? across : 0;
  blocks = std::min(processors, whole + others);
  const int64_t with_more = whole % blocks, with_less = blocks - with_more;
  return {across, whole, others, with_more, others <= 2 * with_less ? with_less : blocks};
}

}  // namespace

CudaBlocks group_matmul_blocks(KernelRun& run, const MatMulShape& s, const CudaEpilogue& epilogue,
                               const GroupMatMulTile& tile, std::string_view fetches,
                               std::span<const int64_t> more_numbers) {
  const int64_t stages = stages_of(tile);
  cuda::Grid grid;
  int64_t blocks = 0;
  std::vector<int64_t> numbers{s.rows, s.columns, s.depth};
  const std::array<int64_t, 5> order = schedule_of(s, tile, queue_of(run).gpu().processors(), blocks);
  numbers.insert(numbers.end(), order.begin(), order.end());
  numbers.insert(numbers.end(), more_numbers.begin(), more_numbers.end());
  grid.blocks[0] = static_cast<unsigned>(blocks);
  grid.threads = threads;
  grid.shared_bytes = static_cast<unsigned>(stages * stage_bytes(tile) + held_bytes());
  const std::string constants =
      fmt::format("#define WARP_GROUPS 1\n#define BM {}\n#define BN {}\n#define STAGES {}\n", tile.rows, tile.columns,
                  stages) +
      fmt::format("#define SHARED_BYTES {}\n#define TRANSPOSED {}\n#define HAS_BIAS {}\n#define HAS_RESIDUAL {}\n",
                  grid.shared_bytes, s.transpose_b ? 1 : 0, epilogue.for_library().bias ? 1 : 0,
                  epilogue.for_library().residual ? 1 : 0) +
      fmt::format("#define HAS_FIXED_B {}\n", s.has_fixed_b ? 1 : 0) +
      fmt::format("typedef {} T;\ntypedef Pack<T, 8> Some;\n", cuda::type_text(s.type)) +
      "constexpr int ROW = 128, A_BYTES = BM * ROW;\n";
  const std::string text = epilogue.in_kernel(product, "biases[column].v[e]", "added.v[e]");
  const std::initializer_list<int64_t> none = {}, columns = {tile.columns};
  return {run,
          "const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, T* y, const T* bias, "
          "const T* residual",
          fmt::format("{}{}{}{}{}{}{}", constants, tensor_core_functions,
                      group_products_text(s.transpose_b ? columns : none, {}, s.transpose_b ? none : columns),
                      read_or_zeros, box_copies, schedule, fetches),
          text,
          numbers,
          grid,
          1};
}

bool CudaGroupMatMul::takes(KernelRun& run, const MatMulShape& s) {
  constexpr int64_t most = int64_t{1} << 30;
  const int64_t alignment =
      alignment_of({run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw()),
                    CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
  return (s.type == ElementType::float16 || s.type == ElementType::bfloat16) && queue_of(run).gpu().major() == 9 &&
         s.depth % 8 == 0 && s.columns % 8 == 0 && alignment == 16 && std::min({s.rows, s.columns, s.depth}) > 0 &&
         std::max({s.rows, s.columns, s.depth}) < most;
}

std::vector<GroupMatMulTile> CudaGroupMatMul::tiles(const MatMulShape& s, int processors) {
  const int64_t columns = s.columns <= 64 ? 64 : 128;
  const GroupMatMulTile large{.rows = 128, .columns = columns}, flat{.rows = 64, .columns = columns};
  const int64_t count = divide_up(s.rows, large.rows) * divide_up(s.columns, large.columns);
  if (count >= 3 * processors) return {large};
  return columns > 64 ? std::vector{large, GroupMatMulTile{.rows = 64, .columns = 64}, flat} : std::vector{large, flat};
}

CudaGroupMatMul::CudaGroupMatMul(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue,
                                 const GroupMatMulTile& tile)
    : shape_(shape), tile_(tile), blocks_(group_matmul_blocks(run, shape, epilogue, tile, from_matrices, {})) {}

void CudaGroupMatMul::run(KernelRun& run) const {
  auto map = [&](size_t input, int64_t rows, int64_t columns, int64_t box_rows) {
    const int64_t sizes[] = {columns, rows}, box[] = {depth_of_stage, box_rows};
    return cuda::tensor_map(queue_of(run).gpu(), run.input(input).raw(), sizes, box, true);
  };
  const cuda::TensorMap a = map(0, shape_.rows, shape_.depth, tile_.rows);
  const cuda::TensorMap b = shape_.transpose_b ? map(1, shape_.columns, shape_.depth, tile_.columns)
                                               : map(1, shape_.depth, shape_.columns, depth_of_stage);
  blocks_.run(run, {&a, &b}, {run.output(0).raw(), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
