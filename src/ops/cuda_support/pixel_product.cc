#include "ops/cuda_support/pixel_product.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t warps = 4, depth = 64;

// A block of four warps has BM pixels, each warp a quarter of them, and BN outputs. Channels come 64 at a time, as 128
// bytes of each row, 16 of them in places that differ from row to row; STAGES pieces are there or under way. Results go
// through shared memory, 16 rows of a warp at a time, so that they are written, and residuals read, 16 bytes at a time.
constexpr std::string_view product = R"cuda(
  constexpr int COUNT = 128, ROW = 128, STAGE = (BM + BN) * ROW, AHEAD = STAGES > 1 ? STAGES - 1 : 1;
  constexpr int M_TILES = BM / 64, N_TILES = BN / 8, HELD = BN + 8;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  const int outputs = (int)v[1], channels = (int)v[2], steps = (channels + 63) / 64;
  const u32 first_column = blockIdx.x % (u32)v[3] * BN, first_row = blockIdx.x / (u32)v[3] * BM;
  const int rows = (int)least((i64)BM, v[0] - first_row), columns = least(BN, outputs - (int)first_column);
  const T *own_x = x + (i64)first_row * channels, *own_w = w + (i64)first_column * channels;

  auto fetch_rows = [&](u8* to, const T* from, int count, int all, int step) {
    const int begin = threadIdx.x / 8, chunk = threadIdx.x % 8, d = step * 64 + chunk * 8;
    const int fits = d < channels ? count : 0;
    u8* target = to + begin * ROW + (chunk ^ begin % 8) * 16;
    const T* source = from + begin * channels + d;
#pragma unroll 4
    for (int row = begin; row < all; row += COUNT / 8) {
      copy_async_16(target, row < fits ? source : from, row < fits);
      target += COUNT / 8 * ROW;
      source += COUNT / 8 * channels;
    }
  };
  auto fetch = [&](int step) {
    if (step < steps) {
      u8* const to = shared + step % STAGES * STAGE;
      fetch_rows(to, own_x, rows, BM, step);
      fetch_rows(to + BM * ROW, own_w, columns, BN, step);
    }
    copy_async_commit();
  };
#pragma unroll
  for (int step = 0; step < AHEAD; ++step) fetch(step);

  float sums[M_TILES][N_TILES][4];
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][n][e] = 0;

  for (int step = 0; step < steps; ++step) {
    copy_async_wait<AHEAD - 1>();
    __syncthreads();
    if (STAGES > 1) fetch(step + AHEAD);
    const u8 *pixels = shared + step % STAGES * STAGE, *weights = pixels + BM * ROW;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
      u32 a[M_TILES][4];
#pragma unroll
      for (int m = 0; m < M_TILES; ++m) {
        const int row = (warp * M_TILES + m) * 16 + lane % 16;
        load_matrix_x4(a[m], pixels + row * ROW + (f * 2 + lane / 16 ^ row % 8) * 16);
      }
#pragma unroll
      for (int n = 0; n < N_TILES; n += 2) {
        u32 b[4];
        const int row = n * 8 + lane / 16 * 8 + lane % 8;
        load_matrix_x4(b, weights + row * ROW + (f * 2 + lane / 8 % 2 ^ row % 8) * 16);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m) {
          mma_16x8x16<T>(sums[m][n], a[m], b[0], b[1]);
          mma_16x8x16<T>(sums[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  __syncthreads();
  float* const held = (float*)shared + warp * 16 * HELD;
  // Of the 16 bytes that a lane writes as its i-th of 16 rows.
  auto row_of = [&](int m, int i) { return (warp * M_TILES + m) * 16 + (i * 32 + lane) / (BN / 8); };
  auto column_of = [&](int i) { return (i * 32 + lane) % (BN / 8) * 8; };
  auto is_inside = [&](int m, int i) { return row_of(m, i) < rows && column_of(i) < columns; };
  auto place = [&](int m, int i) { return (i64)(first_row + row_of(m, i)) * outputs + first_column + column_of(i); };
#pragma unroll
  for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *(Pack<float, 2>*)&held[(g + half * 8) * HELD + n * 8 + c * 2] = {sums[m][n][half * 2], sums[m][n][half * 2 + 1]};
    Some residuals[BN / 16];
    if (HAS_RESIDUAL) {
#pragma unroll
      for (int i = 0; i < BN / 16; ++i) residuals[i] = read_or_zeros((const Some*)(residual + place(m, i)), is_inside(m, i));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < BN / 16; ++i) {
      if (!is_inside(m, i)) continue;
      const int at = i * 32 + lane, column = at % (BN / 8) * 8;
      Some biases = {}, result;
      if (HAS_BIAS) biases = *(const Some*)(bias + first_column + column);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        Wide<T> r = held[at / (BN / 8) * HELD + column + e];
        EPILOGUE
        result.v[e] = narrow<T>(r);
      }
      *(Some*)(y + place(m, i)) = result;
    }
    __syncwarp();
  }
)cuda";

// As few outputs of nothing as possible, and not many blocks that read the same pixels.
int64_t columns_of(int64_t outputs) {
  int64_t best = 0, least = 0;
  for (int64_t columns : {128, 112, 96, 80, 64, 48, 32, 16}) {
    const int64_t computed = round_up(outputs, columns) + 8 * divide_up(outputs, columns);
    if (best != 0 && computed >= least) continue;
    best = columns;
    least = computed;
  }
  return best;
}

CudaBlocks blocks_of(KernelRun& run, const MatMulShape& s, const CudaEpilogue& epilogue, int64_t tile) {
  const int64_t columns = columns_of(s.columns), across = divide_up(s.columns, columns);
  const int64_t stages = std::min<int64_t>(3, divide_up(s.depth, depth));
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(s.rows, tile) * across);
  grid.threads = warps * 32;
  grid.shared_bytes =
      static_cast<unsigned>(std::max(stages * (tile + columns) * depth * 2, warps * 16 * (columns + 8) * 4));
  const std::string functions =
      fmt::format("#define BM {}\n#define BN {}\n#define STAGES {}\n#define SHARED_BYTES {}\n", tile, columns, stages,
                  grid.shared_bytes) +
      fmt::format("#define HAS_BIAS {}\n#define HAS_RESIDUAL {}\ntypedef {} T;\ntypedef Pack<T, 8> Some;\n",
                  epilogue.for_library().bias ? 1 : 0, epilogue.for_library().residual ? 1 : 0,
                  cuda::type_text(s.type)) +
      std::string(tensor_core_functions) + std::string(read_or_zeros);
  const std::string text = epilogue.in_kernel(product, "biases.v[e]", "residuals[i].v[e]");
  return {run,
          "const T* x, const T* w, T* y, const T* bias, const T* residual",
          functions,
          text,
          {s.rows, s.columns, s.depth, across},
          grid};
}

}  // namespace

bool CudaPixelProduct::takes(KernelRun& run, const MatMulShape& s, bool leaves_rest) {
  constexpr int64_t few_channels = 128, most_rows = int64_t{1} << 31;
  const int64_t alignment =
      alignment_of({run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw()),
                    CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
  return (s.type == ElementType::float16 || s.type == ElementType::bfloat16) && queue_of(run).gpu().major() >= 8 &&
         s.depth % 8 == 0 && s.columns % 8 == 0 && alignment == 16 && s.rows < most_rows / 2 &&
         (leaves_rest || s.depth <= few_channels);
}

std::vector<int64_t> CudaPixelProduct::tiles(const MatMulShape& s) {
  return s.rows <= 64 ? std::vector<int64_t>{64} : std::vector<int64_t>{64, 128};
}

CudaPixelProduct::CudaPixelProduct(KernelRun& run, const MatMulShape& shape, const CudaEpilogue& epilogue, int64_t tile)
    : blocks_(blocks_of(run, shape, epilogue, tile)) {}

void CudaPixelProduct::run(KernelRun& run) const {
  blocks_.run(run, {run.input(0).raw(), run.input(1).raw(), run.output(0).raw(), CudaEpilogue::bias_of(run),
                    CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
