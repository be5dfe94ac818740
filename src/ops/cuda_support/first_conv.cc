#include "ops/cuda_support/first_conv.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t rows_each = 4;

// A block has ROWS lines of WIDTH pixels of the output at a time, and the weights all the while. A pixel of the input
// takes four places in shared memory, whatever its channels. So the window of the next output begins 16 bytes further,
// and what a matrix of 8x8 has of a line of the window lies side by side: windows overlap instead of being copied.
// STEPS times four columns of the window are multiplied at once.
constexpr std::string_view convolution = R"cuda(
  constexpr int COUNT = WARPS * 32, W_ROW = STEPS * 32 + 16, N_TILES = BN / 8, HELD = BN + 8, TILES = WIDTH / 16;
  constexpr int X_WIDTH = (WIDTH - 1) * 2 + STEPS * 4, X_ROW = (X_WIDTH + 1) / 2 * 16, X_ROWS = (ROWS - 1) * STRIDE + HEIGHT;
  typedef Pack<T, 4> Pixel;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  u8 *const weights = shared, *const image = weights + HEIGHT * BN * W_ROW;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  float* const held = (float*)(image + X_ROWS * X_ROW) + warp * 16 * HELD;
  const int rows = (int)v[0], columns = (int)v[1], y_rows = (int)v[2], y_columns = (int)v[3];
  const u32 across = (u32)v[6], down = (u32)v[7], all = (u32)v[8];

  for (int at = threadIdx.x; at < HEIGHT * BN * STEPS * 2; at += COUNT)
    copy_async_16(weights + at / (STEPS * 2) * W_ROW + at % (STEPS * 2) * 16, w + at * 8, true);
  copy_async_commit();
  for (u32 tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const int first_x = tile % across * WIDTH, first_y = tile / across % down * ROWS, n = tile / across / down;
    const int left = first_x * 2 - (int)v[5], top = first_y * STRIDE - (int)v[4];
    __syncthreads();  // nobody reads the last tile's image any more
#pragma unroll 8
    for (int at = threadIdx.x; at < X_ROWS * X_WIDTH; at += COUNT) {
      const int row = at / X_WIDTH, column = at % X_WIDTH;
      const bool is_inside = (u32)(top + row) < (u32)rows && (u32)(left + column) < (u32)columns;
      const T* from = x + (((i64)n * rows + top + row) * columns + left + column) * CHANNELS;
      Pixel pixel = {};
#pragma unroll
      for (int channel = 0; channel < CHANNELS; ++channel) pixel.v[channel] = read_or_zeros(from + channel, is_inside);
      *(Pixel*)(image + row * X_ROW + column * 8) = pixel;
    }
    copy_async_wait<0>();
    __syncthreads();
    for (int pair = warp; pair < ROWS * TILES / 2; pair += WARPS) {
      float sums[2][N_TILES][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < N_TILES; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) sums[m][j][e] = 0;
      const u8* lines[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const int own = pair * 2 + m, pixel = own % TILES * 16 + lane % 16;
        lines[m] = image + own / TILES * STRIDE * X_ROW + pixel * 16 + lane / 16 * 16;
      }
      const u8* own_weights = weights + (lane / 16 * 8 + lane % 8) * W_ROW + lane / 8 % 2 * 16;
#pragma unroll 1
      for (int ky = 0; ky < HEIGHT; ++ky) {
#pragma unroll
        for (int f = 0; f < STEPS; ++f) {
          u32 a[2][4];
#pragma unroll
          for (int m = 0; m < 2; ++m) load_matrix_x4(a[m], lines[m] + f * 32);
#pragma unroll
          for (int j = 0; j < N_TILES; j += 2) {
            u32 b[4];
            load_matrix_x4(b, own_weights + j * 8 * W_ROW + f * 32);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
              mma_16x8x16<T>(sums[m][j], a[m], b[0], b[1]);
              mma_16x8x16<T>(sums[m][j + 1], a[m], b[2], b[3]);
            }
          }
        }
        lines[0] += X_ROW;
        lines[1] += X_ROW;
        own_weights += BN * W_ROW;
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const int own = pair * 2 + m, oy = first_y + own / TILES, ox = first_x + own % TILES * 16;
#pragma unroll
        for (int j = 0; j < N_TILES; ++j)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            *(Pack<float, 2>*)&held[(g + half * 8) * HELD + j * 8 + c * 2] = {sums[m][j][half * 2],
                                                                             sums[m][j][half * 2 + 1]};
        __syncwarp();
        for (int at = lane; at < 16 * (BN / 8); at += 32) {
          const int pixel = at / (BN / 8), column = at % (BN / 8) * 8;
          if (oy >= y_rows || ox + pixel >= y_columns || column >= OUTPUTS) continue;
          const i64 place = (((i64)n * y_rows + oy) * y_columns + ox + pixel) * OUTPUTS + column;
          Some biases = {}, residuals = {}, result;
          if (HAS_BIAS) biases = *(const Some*)(bias + column);
          if (HAS_RESIDUAL) residuals = *(const Some*)(residual + place);
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            Wide<T> r = held[pixel * HELD + column + e];
            EPILOGUE
            result.v[e] = narrow<T>(r);
          }
          *(Some*)(y + place) = result;
        }
        __syncwarp();
      }
    }
  }
)cuda";

// Warps of a block that multiply so many pairs of tiles in turn: most of them when none waits for others at the end.
int64_t warps_for(int64_t pairs) {
  int64_t best = 4;
  for (int64_t warps : {5, 6, 7, 8}) {
    if (divide_up(pairs, warps) * warps <= divide_up(pairs, best) * best) best = warps;
  }
  return best;
}

}  // namespace

bool is_first_convolution(KernelRun& run, const cuda::ConvolutionShape& s) {
  constexpr int64_t most_tiles = int64_t{1} << 31;
  if (s.strides.size() != 2) return false;
  const int64_t alignment = alignment_of(
      {static_cast<const void*>(run.output(0).raw()), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
  return s.groups == 1 && s.x[1] <= 4 && s.y[1] <= 64 && s.y[1] % 8 == 0 && s.w[2] <= 8 && s.w[3] <= 8 &&
         s.strides[0] <= 2 && s.strides[1] == 2 && s.dilations[0] == 1 && s.dilations[1] == 1 && alignment == 16 &&
         s.y[0] * s.y[2] * s.y[3] < most_tiles;
}

bool CudaFirstConvolution::takes(KernelRun& run, const cuda::ConvolutionShape& s) {
  return is_first_convolution(run, s) && (s.type == ElementType::float16 || s.type == ElementType::bfloat16) &&
         queue_of(run).gpu().major() >= 8;
}

CudaFirstConvolution::CudaFirstConvolution(KernelRun& run, const cuda::ConvolutionShape& s,
                                           const CudaEpilogue& epilogue) {
  const int64_t outputs = s.y[1], columns = round_up(outputs, 16), height = s.w[2], steps = divide_up(s.w[3], 4);
  const int64_t across = divide_up(s.y[3], 128), width = round_up(divide_up(s.y[3], across), 16);
  const int64_t down = divide_up(s.y[2], rows_each), tiles = s.y[0] * down * across;
  const int64_t warps = warps_for(rows_each * width / 32);
  const std::string type = fmt::format("typedef {} T;\n", cuda::type_text(s.type));
  // Of every line of the window and every output, four places for each column.
  const int64_t row = steps * 16, count = height * columns * row;
  weights_ = queue_of(run).gpu().allocate(count * bits_of(s.type) / 8);
  turn_.emplace(run, count, "const T* w, T* turned",
                "const u32 at = (u32)i, place = at % (u32)v[0], n = at / (u32)v[0] % (u32)v[1];\n    "
                "const u32 ky = at / (u32)(v[0] * v[1]), kx = place / 4, c = place % 4;\n    "
                "turned[i] = n < v[2] && kx < v[4] && c < v[5] ? w[((n * v[3] + ky) * v[4] + kx) * v[5] + c] : T{};",
                std::vector<int64_t>{row, columns, outputs, height, s.w[3], s.x[1]}, type);
  const int64_t x_width = (width - 1) * 2 + steps * 4, x_rows = (rows_each - 1) * s.strides[0] + height;
  cuda::Grid grid;
  grid.threads = warps * 32;
  grid.shared_bytes = static_cast<unsigned>(height * columns * (steps * 32 + 16) + x_rows * round_up(x_width, 2) * 8 +
                                            warps * 16 * (columns + 8) * 4);
  const int64_t at_once = std::max<int64_t>(1, (220 << 10) / (grid.shared_bytes + 1024));
  grid.blocks[0] = static_cast<unsigned>(std::min<int64_t>(tiles, at_once * queue_of(run).gpu().processors()));
  const std::string functions =
      fmt::format("#define WARPS {}\n#define ROWS {}\n#define WIDTH {}\n#define BN {}\n#define STEPS {}\n", warps,
                  rows_each, width, columns, steps) +
      fmt::format("#define HEIGHT {}\n#define STRIDE {}\n#define CHANNELS {}\n#define OUTPUTS {}\n", height,
                  s.strides[0], s.x[1], outputs) +
      fmt::format("#define HAS_BIAS {}\n#define HAS_RESIDUAL {}\n#define SHARED_BYTES {}\n",
                  epilogue.for_library().bias ? 1 : 0, epilogue.for_library().residual ? 1 : 0, grid.shared_bytes) +
      type + "typedef Pack<T, 8> Some;\n" + std::string(tensor_core_functions) + std::string(read_or_zeros);
  const std::string text = epilogue.in_kernel(convolution, "biases.v[e]", "residuals.v[e]");
  blocks_.emplace(
      run, "const T* x, const T* w, T* y, const T* bias, const T* residual", functions, text,
      std::vector<int64_t>{s.x[2], s.x[3], s.y[2], s.y[3], s.pads_begin[0], s.pads_begin[1], across, down, tiles},
      grid);
  turn(run);
}

void CudaFirstConvolution::run(KernelRun& run, bool weights_may_change) const {
  if (weights_may_change) turn(run);
  blocks_->run(run, {run.input(0).raw(), weights_.get(), run.output(0).raw(), CudaEpilogue::bias_of(run),
                     CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
