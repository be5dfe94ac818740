#include "ops/cuda_support/group_first_conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/first_conv.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t threads = 128, most_blocks = 4;
// Of a processor; a block takes some for itself.
constexpr int64_t shared_memory = 228 << 10, shared_by_block = 1 << 10;

// A block has a strip of lines of the output, WIDTH pixels of each, and the weights. The lines of the input that one
// line of the output needs are in shared memory, as a ring; those that the next one needs besides are read while this
// one is multiplied. A pixel of the input takes four places there, whatever its channels: so the window of the next
// output begins 16 bytes further, and eight windows are a matrix as products by groups of warps want it, which overlaps
// with the next. A pixel of floats takes 16 bytes by itself: of a line, all even columns come before all odd ones.
// v: rows, columns, rows and columns of the output, pads above, tiles across, strips, lines of a strip.
constexpr std::string_view convolution = R"cuda(
  // LANES elements are 16 bytes, of COLUMNS pixels.
  constexpr int COUNT = 128, LANES = 16 / sizeof(T), COLUMNS = LANES / 4, UNITS = X_WIDTH / LANES, LINE = X_WIDTH / COLUMNS * 16;
  constexpr int RING = HEIGHT + STRIDE, PARTS = (WIDTH + 63) / 64, NEXT_COLUMN = COLUMNS == 2 ? 16 : LINE / 2;
  constexpr int W_LINE = STEPS * BN * 32, MORE = (STRIDE * UNITS + COUNT - 1) / COUNT;
  struct Unit { Some parts[CHANNELS]; };  // LANES pixels
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  u8 *const weights = shared, *const image = weights + HEIGHT * W_LINE;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  T* const held = (T*)(image + RING * LINE) + warp * 16 * HELD;
  const int rows = (int)v[0], columns = (int)v[1], y_rows = (int)v[2], y_columns = (int)v[3];
  const int first_x = blockIdx.x % (u32)v[5] * WIDTH, n = blockIdx.x / (u32)(v[5] * v[6]);
  const int first_y = blockIdx.x / (u32)v[5] % (u32)v[6] * (int)v[7], lines = least((int)v[7], y_rows - first_y);
  const int left = first_x * 2 - 8, top = first_y * STRIDE - (int)v[4];

  auto read = [&](int line, int unit) {
    const int row = top + line, column = left + unit * LANES;
    const bool is_inside = (u32)row < (u32)rows && (u32)column < (u32)columns;
    const Some* from = (const Some*)(x + (((i64)n * rows + row) * columns + column) * CHANNELS);
    Unit result;
#pragma unroll
    for (int part = 0; part < CHANNELS; ++part) result.parts[part] = read_or_zeros(from + part, is_inside);
    return result;
  };
  auto write = [&](int line, int unit, const Unit& pixels) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Some some = {};
#pragma unroll
      for (int e = 0; e < COLUMNS * CHANNELS; ++e) {
        const int from = i * COLUMNS * CHANNELS + e;
        some.v[e / CHANNELS * 4 + e % CHANNELS] = rounded_to_multiply(pixels.parts[from / LANES].v[from % LANES]);
      }
      const int at = unit * 4 + i;
      *(Some*)(image + line % RING * LINE + (COLUMNS == 2 ? at * 16 : at % 2 * NEXT_COLUMN + at / 2 * 16)) = some;
    }
  };

  for (int at = threadIdx.x; at < HEIGHT * W_LINE / 16; at += COUNT) copy_async_16(weights + at * 16, w + at * LANES, true);
  copy_async_commit();
#pragma unroll 2
  for (int at = threadIdx.x; at < HEIGHT * UNITS; at += COUNT) write(at / UNITS, at % UNITS, read(at / UNITS, at % UNITS));
  copy_async_wait<0>();
  group_sees_copies();
  __syncthreads();

  for (int y_line = 0; y_line < lines; ++y_line) {
    const int next_line = y_line * STRIDE + HEIGHT;
    const bool goes_on = y_line + 1 < lines;
    Unit next[MORE];
#pragma unroll
    for (int i = 0; i < MORE; ++i) {
      const int at = threadIdx.x + i * COUNT;
      if (goes_on && at < STRIDE * UNITS) next[i] = read(next_line + at / UNITS, at % UNITS);
    }
    float sums[PARTS][BN / 8][4];
    const Matrix lines_at = plain_at<NEXT_COLUMN>(image), columns = plain_at<BN * 16>(weights);
    group_begin();
#pragma unroll
    for (int ky = 0; ky < HEIGHT; ++ky) {
      const Matrix from = lines_at + ((y_line * STRIDE + ky) % RING * LINE + START * 8);
#pragma unroll
      for (int f = 0; f < STEPS; ++f)
#pragma unroll
        for (int m = 0; m < PARTS; ++m)
          group_plain_64xNx16<T, BN, NEXT_COLUMN, BN * 16>(sums[m], from + (m * 1024 + f * COLUMNS * 16),
                                                           columns + (ky * W_LINE + f * BN * 32), ky + f > 0);
    }
    group_commit();
    group_wait<0>();
#pragma unroll
    for (int m = 0; m < PARTS; ++m)
#pragma unroll
      for (int j = 0; j < BN / 8; ++j) group_done(sums[m][j]);
#pragma unroll
    for (int i = 0; i < MORE; ++i) {
      const int at = threadIdx.x + i * COUNT;
      if (goes_on && at < STRIDE * UNITS) write(next_line + at / UNITS, at % UNITS, next[i]);
    }
#pragma unroll
    for (int m = 0; m < PARTS; ++m) {
#pragma unroll
      for (int j = 0; j < BN / 8; ++j) {
        Pack<T, 2> biases = {};
        if (HAS_BIAS) biases = *(const Pack<T, 2>*)(bias + j * 8 + c * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float results[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            Wide<T> r = sums[m][j][half * 2 + e];
            EPILOGUE
            results[e] = r;
          }
          store_pair(held + (g + half * 8) * HELD + j * 8 + c * 2, results);
        }
      }
      __syncwarp();
      const int begin = m * 64 + warp * 16, inside = least(WIDTH, y_columns - first_x) - begin;
      T* const to = y + (((i64)n * y_rows + first_y + y_line) * y_columns + first_x + begin) * BN;
#pragma unroll
      for (int i = 0; i < (16 * BN / LANES + 31) / 32; ++i) {
        const int at = i * 32 + lane, pixel = at / (BN / LANES), column = at % (BN / LANES) * LANES;
        if (pixel < least(16, inside)) *(Some*)(to + at * LANES) = *(const Some*)(held + pixel * HELD + column);
      }
      __syncwarp();
    }
    group_sees_copies();
    __syncthreads();
  }
)cuda";

// Places for nothing before a window's columns: so windows begin at an even one.
int64_t places_before(const cuda::ConvolutionShape& s) { return s.pads_begin[1] % 2; }

int64_t element_bytes(const cuda::ConvolutionShape& s) { return bits_of(s.type) / 8; }
int64_t elements_in_16_bytes(const cuda::ConvolutionShape& s) { return 16 / element_bytes(s); }

}  // namespace

bool CudaGroupFirstConvolution::takes(KernelRun& run, const cuda::ConvolutionShape& s) {
  return is_first_convolution(run, s) && (element_bytes(s) == 2 || s.allow_tf32) && queue_of(run).gpu().major() == 9 &&
         !run.has_input(3) && s.x[3] % elements_in_16_bytes(s) == 0 && s.pads_begin[0] >= 0 && s.pads_begin[1] >= 0 &&
         s.pads_begin[1] < 8 && alignment_of({run.input(0).raw()}) == 16;
}

CudaGroupFirstConvolution::CudaGroupFirstConvolution(KernelRun& run, const cuda::ConvolutionShape& s,
                                                     const CudaEpilogue& epilogue) {
  const int64_t outputs = s.y[1], height = s.w[2], before = places_before(s), lanes = elements_in_16_bytes(s);
  const int64_t columns_of_step = lanes / 2, steps = divide_up(s.w[3] + before, columns_of_step);
  const int64_t start = 8 - s.pads_begin[1] - before;
  const int64_t across = divide_up(s.y[3], 128), width = round_up(divide_up(s.y[3], across), 16);
  const int64_t x_width = round_up((width - 1) * 2 + start + steps * columns_of_step, 8);
  const int64_t weight_bytes = height * steps * outputs * 32, weights = weight_bytes / element_bytes(s);
  const int64_t held = held_row(outputs, element_bytes(s));
  // The windows of a group that has fewer pixels than it could reach behind the last line.
  const int64_t behind = std::max((round_up(width, 64) - width) * 16 + start * 8, 64 * held * element_bytes(s));
  const int64_t line_bytes = x_width * 4 * element_bytes(s);
  const int64_t shared = weight_bytes + (height + s.strides[0]) * line_bytes + round_up(behind, 16);
  const int64_t blocks_at_once = std::min(most_blocks, shared_memory / (shared + shared_by_block));
  const int64_t at_once = blocks_at_once * queue_of(run).gpu().processors();
  const int64_t lines = divide_up(s.y[0] * s.y[2] * across, at_once), strips = divide_up(s.y[2], lines);
  const std::string type = fmt::format("typedef {} T;\n", cuda::type_text(s.type));
  // Of every line of the window, 16 bytes of all outputs side by side, four places for each column.
  weights_ = queue_of(run).gpu().allocate(weight_bytes);
  turn_.emplace(
      run, weights, "const T* w, T* turned",
      "const i64 n = i / LANES % v[0], part = i / LANES / v[0], ky = part / v[1];\n    "
      "const i64 place = part % v[1] * LANES + i % LANES, kx = place / 4 - v[2], c = place % 4;\n    "
      "turned[i] = kx >= 0 && kx < v[3] && c < v[4] ? rounded_to_multiply(w[((n * v[5] + ky) * v[3] + kx) * v[4] + c]) "
      ": T{};",
      std::vector<int64_t>{outputs, steps * 2, before, s.w[3], s.x[1], height},
      type + "constexpr int LANES = 16 / sizeof(T);\n" + std::string(tensor_core_functions));
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(s.y[0] * strips * across);
  grid.threads = threads;
  grid.shared_bytes = static_cast<unsigned>(shared);
  const std::string products =
      element_bytes(s) == 2 ? group_products_text({outputs}, {}) : tf32_group_products_text({outputs}, {});
  const std::string functions =
      fmt::format("#define WARP_GROUPS 1\n#define WIDTH {}\n#define X_WIDTH {}\n#define BN {}\n#define STEPS {}\n",
                  width, x_width, outputs, steps) +
      fmt::format("#define HEIGHT {}\n#define STRIDE {}\n#define CHANNELS {}\n#define START {}\n#define HELD {}\n",
                  height, s.strides[0], s.x[1], start, held) +
      fmt::format("#define HAS_BIAS {}\n#define SHARED_BYTES {}\n", epilogue.for_library().bias ? 1 : 0,
                  grid.shared_bytes) +
      type + fmt::format("typedef Pack<T, {}> Some;\n", lanes) + std::string(tensor_core_functions) + products +
      std::string(read_or_zeros);
  const std::string text = epilogue.in_kernel(convolution, "biases.v[e]", "");
  blocks_.emplace(run, "const T* x, const T* w, T* y, const T* bias", functions, text,
                  std::vector<int64_t>{s.x[2], s.x[3], s.y[2], s.y[3], s.pads_begin[0], across, strips, lines}, grid,
                  static_cast<int>(blocks_at_once));
  turn(run);
}

void CudaGroupFirstConvolution::run(KernelRun& run, bool weights_may_change) const {
  if (weights_may_change) turn(run);
  blocks_->run(run, {run.input(0).raw(), weights_.get(), run.output(0).raw(), CudaEpilogue::bias_of(run)});
}

}  // namespace tenon::ops
