#include "ops/channels_last/cuda_depthwise_boxes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/box_copies.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

constexpr int64_t most_shared_bytes = 64 << 10, most_threads = 256;

// A thread has two channels, whose weights it keeps, of STRIP pixels side by side, and of others every so many strips
// further on. Blocks of the same part of an image follow each other.
// v: channels, rows and columns of the result, pairs of channels of a block, strips across and rows of its tile, blocks
// for all channels, tiles across, tiles down, columns of the box, its bytes, pads.
constexpr std::string_view convolution = R"cuda(
  constexpr int COLUMNS = (STRIP - 1) * STRIDE_X + WIDTH;
  DYNAMIC_SHARED(box, SHARED_BYTES);
  __shared__ u64 barrier;
  const int channels = (int)v[0], height = (int)v[1], width = (int)v[2], pairs = (int)v[3], across = (int)v[4];
  u32 rest = blockIdx.x;
  const int chunk = rest % (u32)v[6]; rest /= (u32)v[6];
  const int first_column = rest % (u32)v[7] * across * STRIP; rest /= (u32)v[7];
  const int first_row = rest % (u32)v[8] * (int)v[5], n = rest / (u32)v[8];
  const int pair = threadIdx.x % pairs, channel = (chunk * pairs + pair) * 2;
  if (threadIdx.x == 0) {
    barrier_make(&barrier, 1);
    barriers_made();
    barrier_expect(&barrier, (u32)v[10]);
    // Channels count by 16 bits.
    copy_box(box, &x, &barrier, chunk * pairs * (int)sizeof(T), first_column * STRIDE_X - (int)v[12],
             first_row * STRIDE_Y - (int)v[11], n);
  }
  const bool is_inside = channel < channels;
  Pair taps[HEIGHT * WIDTH], biases = {};
#pragma unroll
  for (int t = 0; t < HEIGHT * WIDTH; ++t) taps[t] = read_or_zeros((const Pair*)(w + t * channels + channel), is_inside);
  if (HAS_BIAS) biases = read_or_zeros((const Pair*)(bias + channel), is_inside);
  float factors[HEIGHT * WIDTH][2];
#pragma unroll
  for (int t = 0; t < HEIGHT * WIDTH; ++t)
#pragma unroll
    for (int e = 0; e < 2; ++e) factors[t][e] = widen(taps[t].v[e]);
  __syncthreads();
  barrier_wait(&barrier, 0);
  if (!is_inside) return;

  const int line = (int)v[9] * pairs;  // of the box, in pairs
  for (int strip = threadIdx.x / pairs; strip < across * (int)v[5]; strip += blockDim.x / pairs) {
    const int own_row = strip / across, own_column = strip % across * STRIP, row = first_row + own_row;
    if (row >= height) break;
    const Pair* from = (const Pair*)box + own_row * STRIDE_Y * line + own_column * STRIDE_X * pairs + pair;
    float sums[STRIP][2] = {};
#pragma unroll
    for (int ky = 0; ky < HEIGHT; ++ky)
#pragma unroll
      for (int column = 0; column < COLUMNS; ++column) {
        const Pair pixel = from[ky * line + column * pairs];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float value = widen(pixel.v[e]);
#pragma unroll
          for (int p = 0; p < STRIP; ++p) {
            const int kx = column - p * STRIDE_X;
            if (kx >= 0 && kx < WIDTH) sums[p][e] += value * factors[ky * WIDTH + kx][e];
          }
        }
      }
#pragma unroll
    for (int p = 0; p < STRIP; ++p) {
      const int column = first_column + own_column + p;
      if (column >= width) break;
      const i64 at = (((i64)n * height + row) * width + column) * channels + channel;
      float results[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        Wide<T> r = sums[p][e];
        EPILOGUE
        results[e] = r;
      }
      store_pair(y + at, results);
    }
  }
)cuda";

// Pixels side by side that a thread has: as few as possible of them are outside.
int64_t strip_of(int64_t width) {
  int64_t best = 0, least = 0;
  for (int64_t strip : {7, 8, 6, 5, 4}) {
    const int64_t computed = round_up(width, strip);
    if (best != 0 && computed >= least) continue;
    best = strip;
    least = computed;
  }
  return best;
}

// Channels of a block: as few as possible of them are outside.
int64_t channels_of(int64_t channels) {
  int64_t best = 0, least = 0;
  for (int64_t count : {64, 72, 56, 80, 48, 96, 32, 24, 16, 8}) {
    const int64_t computed = round_up(channels, count) + divide_up(channels, count);
    if (best != 0 && computed >= least) continue;
    best = count;
    least = computed;
  }
  return best;
}

// How an image is divided.
struct Tiling {
  int64_t strip, channels, strips, rows;  // pixels of a strip; of a tile
  int64_t chunks, across, down;
  std::vector<int64_t> box;  // channels by 16 bits, of which a float is two

  Tiling(const cuda::ConvolutionShape& s, int64_t rows_of_tile)
      : strip(strip_of(s.y[3])), channels(channels_of(s.x[1])), rows(std::min(rows_of_tile, s.y[2])) {
    constexpr int64_t most_columns = 32;
    const int64_t all = divide_up(s.y[3], strip), most = std::max<int64_t>(1, most_columns / strip);
    strips = divide_up(all, divide_up(all, most));
    chunks = divide_up(s.x[1], channels);
    across = divide_up(all, strips);
    down = divide_up(s.y[2], rows);
    box = {channels * bits_of(s.type) / 16, (strips * strip - 1) * s.strides[1] + s.w[3],
           (rows - 1) * s.strides[0] + s.w[2], 1};
  }
  int64_t bytes() const { return box[0] * box[1] * box[2] * 2; }
  // Of few sizes, as kernels differ by it.
  int64_t shared_bytes() const { return round_up(bytes(), 16 << 10); }
  int64_t blocks(const cuda::ConvolutionShape& s) const { return s.x[0] * chunks * across * down; }
  // As many as have equal work.
  int64_t threads() const {
    const int64_t all = strips * rows, most = std::max<int64_t>(1, most_threads / (channels / 2));
    return divide_up(all, divide_up(all, most)) * (channels / 2);
  }
};

CudaBlocks blocks_of(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue,
                     const Tiling& tiling) {
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(tiling.blocks(s));
  grid.threads = static_cast<unsigned>(tiling.threads());
  grid.shared_bytes = static_cast<unsigned>(tiling.shared_bytes());
  const std::string text = epilogue.in_kernel(convolution, "biases.v[e]", "residual[at + e]");
  const std::string functions =
      fmt::format("#define STRIP {}\n#define HEIGHT {}\n#define WIDTH {}\n#define STRIDE_Y {}\n#define STRIDE_X {}\n",
                  tiling.strip, s.w[2], s.w[3], s.strides[0], s.strides[1]) +
      fmt::format("#define HAS_BIAS {}\n#define SHARED_BYTES {}\ntypedef {} T;\ntypedef Pack<T, 2> Pair;\n",
                  epilogue.for_library().bias ? 1 : 0, grid.shared_bytes, cuda::type_text(s.type)) +
      std::string(tensor_core_functions) + std::string(read_or_zeros) + std::string(box_copies);
  return {run,
          "const __grid_constant__ TensorMap x, const T* w, T* y, const T* bias, const T* residual",
          functions,
          text,
          {s.x[1], s.y[2], s.y[3], tiling.channels / 2, tiling.strips, tiling.rows, tiling.chunks, tiling.across,
           tiling.down, tiling.box[1], tiling.bytes(), s.pads_begin[0], s.pads_begin[1]},
          grid};
}

}  // namespace

bool CudaDepthwiseBoxes::takes(KernelRun& run, const cuda::ConvolutionShape& s) {
  constexpr int64_t most_taps = 25, most_in_box = 256;
  const int64_t alignment = alignment_of({run.input(0).raw(), static_cast<const void*>(run.output(0).raw()),
                                          CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
  const Tiling least(s, 1);
  const bool is_taken_type =
      s.type == ElementType::float16 || s.type == ElementType::bfloat16 || s.type == ElementType::float32;
  return is_taken_type && queue_of(run).gpu().major() == 9 && s.x[1] % 8 == 0 && alignment == 16 &&
         s.w[2] * s.w[3] <= most_taps && least.bytes() <= most_shared_bytes &&
         std::ranges::max(least.box) <= most_in_box && least.blocks(s) < int64_t{1} << 31;
}

std::vector<int64_t> CudaDepthwiseBoxes::rows(KernelRun& run, const cuda::ConvolutionShape& s) {
  // Large tiles read less twice; but there should be work for the whole GPU.
  const int64_t blocks = 2 * queue_of(run).gpu().processors();
  std::vector<int64_t> result;
  for (int64_t rows : {14, 7, 4, 2, 1}) {
    const Tiling tiling(s, rows);
    const bool fits = tiling.bytes() <= most_shared_bytes && tiling.box[2] <= 256;
    if (!fits || (rows > s.y[2] && rows > 1)) continue;
    if (tiling.blocks(s) >= blocks || rows == 1) result.push_back(rows);
    if (result.size() == 2) break;
  }
  return result;
}

CudaDepthwiseBoxes::CudaDepthwiseBoxes(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue,
                                       int64_t rows)
    : sizes_{s.x[1] * bits_of(s.type) / 16, s.x[3], s.x[2], s.x[0]},
      box_(Tiling(s, rows).box),
      blocks_(blocks_of(run, s, epilogue, Tiling(s, rows))) {}

void CudaDepthwiseBoxes::run(KernelRun& run, const void* weights) const {
  const cuda::TensorMap x = cuda::tensor_map(queue_of(run).gpu(), run.input(0).raw(), sizes_, box_, false);
  blocks_.run(run, {&x}, {weights, run.output(0).raw(), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
