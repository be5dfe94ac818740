#include "ops/cuda_support/box_conv.h"

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

constexpr int64_t channels_of_row = 64, row_bytes = 128, threads = 384, most_windows = 256, most_boxes = 3,
                  most_in_box = 256;
constexpr int64_t most_shared = 226 << 10, held_bytes = 2 * 2 * 64 * 72 * 2;

// A thread of the first group fetches boxes of 64 channels, and the weights of one tap after the other. The other two
// groups multiply weights of 64 outputs by BN windows: in tiles of 128 outputs both have the same windows, else each
// has its own tiles, and stores results while the other multiplies. A window's pixel for a tap is a row of the box, and
// the windows of the next tap begin some rows further on. Results are held in shared memory, 64 windows at a time, with
// the outputs of a window side by side. v: rows, columns and channels of the output, pads above and on the left, tiles
// across and down, parts of the outputs, tiles.
constexpr std::string_view convolution = R"cuda(
  constexpr int BOX = (LINES + HEIGHT - 1) * PITCH * ROW, BOX_STEP = (BOX + 1023) / 1024 * 1024, TAPS = HEIGHT * WIDTH;
  constexpr int OUTS = SHARES_WINDOWS ? 128 : 64, WARPS = OUTS / 16, HELD = 72;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  __shared__ u64 full[BOXES], empty[BOXES], weights_full[SLOTS], weights_empty[SLOTS], turns[2], held_full[2];
  const int rows = (int)v[0], columns = (int)v[1], outputs = (int)v[2], across = (int)v[5], down = (int)v[6];
  const int parts = (int)v[7];
  const u32 tiles = (u32)v[8];
  const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
  u8 *const weights = shared, *const boxes = weights + SLOTS * OUTS * ROW;
  struct Place { int part, x, y, image; };
  auto place_of = [&](u32 tile) {
    const int part = tile % parts, x = tile / parts % across * TILE_WIDTH;
    return Place{part, x, (int)(tile / (parts * across) % down) * LINES, (int)(tile / (parts * across * down))};
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < BOXES; ++i) {
      barrier_make(full + i, 1);
      barrier_make(empty + i, WARPS);
    }
    for (int i = 0; i < SLOTS; ++i) {
      barrier_make(weights_full + i, 1);
      barrier_make(weights_empty + i, WARPS);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_make(turns + i, 4);
      barrier_make(held_full + i, 4);
    }
    barriers_made();
    prefetch_map(&x);
    prefetch_map(&w);
  }
  __syncthreads();

  if (group == 0) {
    change_registers<40, false>();
    if (threadIdx.x > 0) return;
    int box = 0, slot = 0;
    u32 parity = 1, weights_parity = 1;
    auto fetch_weights = [&](int part, int chunk, int tap) {
      barrier_wait(weights_empty + slot, weights_parity);
      barrier_expect(weights_full + slot, OUTS * ROW);
      copy_box(weights + slot * OUTS * ROW, &w, weights_full + slot, chunk * 64, tap, part * OUTS, 0);
      if (++slot == SLOTS) slot = 0, weights_parity ^= 1;
    };
    // What is constant is fetched before earlier kernels have ended, but not so much that pixels have to wait for it.
    constexpr int EARLY = !HAS_FIXED_WEIGHTS ? 0 : CHUNKS * TAPS < 2 ? 1 : 2;
    for (int i = 0; i < EARLY; ++i) fetch_weights(place_of(blockIdx.x).part, i / TAPS, i % TAPS);
    begin_kernel();
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const Place place = place_of(tile);
      for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        barrier_wait(empty + box, parity);
        barrier_expect(full + box, BOX);
        copy_box(boxes + box * BOX_STEP, &x, full + box, chunk * 64, place.x - (int)v[4], place.y - (int)v[3],
                 place.image);
        if (++box == BOXES) box = 0, parity ^= 1;
        for (int tap = 0; tap < TAPS; ++tap)
          if (tile == blockIdx.x ? chunk * TAPS + tap >= EARLY : !WEIGHTS_STAY) fetch_weights(place.part, chunk, tap);
      }
    }
    return;
  }

  change_registers<232, true>();
  begin_kernel();
  const int own = group - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, g = lane / 4;
  T* const held = (T*)(boxes + BOXES * BOX_STEP) + own * 2 * 64 * HELD;
  const Matrix own_weights = matrix_at<ROW>(weights + (SHARES_WINDOWS ? own * 64 * ROW : 0));
  u32 times_held = 0;
  for (u32 i = SHARES_WINDOWS ? 0 : own; blockIdx.x + i * gridDim.x < tiles; i += SHARES_WINDOWS ? 1 : 2) {
    const Place place = place_of(blockIdx.x + i * gridDim.x);
    const int first_output = place.part * OUTS + (SHARES_WINDOWS ? own * 64 : 0);
    T biases[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (HAS_BIAS) biases[half] = bias[least(first_output + warp * 16 + half * 8 + g, outputs - 1)];
    float sums[BN / 8][4];
    if (!SHARES_WINDOWS) barrier_wait(turns + own, i / 2 % 2 ^ (own == 0));
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      const u32 piece = i * CHUNKS + chunk, first_tap = (WEIGHTS_STAY ? chunk : piece) * TAPS;
      barrier_wait(full + piece % BOXES, piece / BOXES % 2);
      const Matrix pixels = matrix_at<ROW>(boxes + piece % BOXES * BOX_STEP);
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) {
        const u32 slot = (first_tap + tap) % SLOTS;
        const Matrix left = own_weights + slot * OUTS * ROW, right = pixels + (tap / WIDTH * PITCH + tap % WIDTH) * ROW;
        barrier_wait(weights_full + slot, (first_tap + tap) / SLOTS % 2);
        group_begin();
#pragma unroll
        for (int f = 0; f < 4; ++f) group_64xNx16<T, BN, ROW>(sums, left + f * 32, right + f * 32, chunk + tap + f > 0);
        group_commit();
        if (!WEIGHTS_STAY && tap > 0) {
          group_wait<1>();
          if (lane == 0) barrier_arrive(weights_empty + (first_tap + tap - 1) % SLOTS);
        }
      }
      if (!SHARES_WINDOWS && chunk + 1 == CHUNKS && lane == 0) barrier_arrive(turns + 1 - own);
      group_wait<0>();
      if (lane == 0) barrier_arrive(empty + piece % BOXES);
      if (!WEIGHTS_STAY && lane == 0) barrier_arrive(weights_empty + (first_tap + TAPS - 1) % SLOTS);
    }
#pragma unroll
    for (int n = 0; n < BN / 8; ++n) group_done(sums[n]);

#pragma unroll
    for (int first = 0; first < BN; first += 64) {
      T* const buffer = held + times_held % 2 * 64 * HELD;
#pragma unroll
      for (int n = first / 8; n < BN / 8 && n < first / 8 + 8; ++n) {
        u32 pairs[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float results[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            Wide<T> r = sums[n][half * 2 + e];
            EPILOGUE
            results[e] = r;
          }
          pairs[half] = pair_of<T>(results[0], results[1]);
        }
        store_matrix_x2_transposed(pairs, buffer + (n * 8 - first + lane % 8) * HELD + warp * 16 + lane / 8 % 2 * 8);
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(held_full + own);
      barrier_wait(held_full + own, times_held++ % 2);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int window = k * 16 + threadIdx.x % 128 / 8, output = first_output + lane % 8 * 8;
        const int inner_y = (first + window) / PITCH, inner_x = (first + window) % PITCH;
        const int line = place.y + inner_y, column = place.x + inner_x;
        if (inner_x < TILE_WIDTH && column < columns && inner_y < LINES && line < rows && output < outputs)
          *(Some*)(y + (((i64)place.image * rows + line) * columns + column) * outputs + output) =
              *(const Some*)(buffer + window * HELD + lane % 8 * 8);
      }
    }
  }
)cuda";

// What follows from a shape and a tile.
struct BoxLayout {
  int64_t outputs, pitch, windows, taps, chunks, across, down, parts, tiles, box_lines, box_bytes, boxes, slots;
  bool shares_windows, weights_stay;

  BoxLayout(const cuda::ConvolutionShape& s, const CudaBoxConvolution::Tile& tile) : outputs(tile.outputs) {
    taps = s.w[2] * s.w[3];
    chunks = divide_up(s.x[1], channels_of_row);
    pitch = tile.width + s.w[3] - 1;
    windows = round_up(tile.lines * pitch - (s.w[3] - 1), 8);
    across = divide_up(s.y[3], tile.width);
    down = divide_up(s.y[2], tile.lines);
    shares_windows = outputs > 64;
    parts = divide_up(s.y[1], outputs);
    tiles = s.y[0] * down * across * parts;
    box_lines = tile.lines + s.w[2] - 1;
    box_bytes = round_up(box_lines * pitch * row_bytes, 1024);
    boxes = 2;
    slots = slots_beside(boxes);
    weights_stay = parts == 1 && slots >= taps * chunks;
    if (weights_stay) slots = taps * chunks;
    while (boxes < most_boxes && slots_beside(boxes + 1) >= slots) ++boxes;
  }
  int64_t slots_beside(int64_t count) const {
    return (most_shared - held_bytes - count * box_bytes) / (outputs * row_bytes);
  }
  int64_t shared_bytes() const { return slots * outputs * row_bytes + boxes * box_bytes + held_bytes; }
  bool fits() const { return windows <= most_windows && std::max(pitch, box_lines) <= most_in_box && slots >= 2; }
  // About how many cycles it takes: products, or what they need from the second cache, by one processor or all.
  int64_t cycles(int64_t processors) const {
    constexpr int64_t bytes_of_one = 64, bytes_of_all = 2800, between_tiles = 600;
    const int64_t rounds = divide_up(tiles, processors), weights = taps * chunks * outputs * row_bytes;
    const int64_t of_tile = chunks * box_bytes + (weights_stay ? 0 : weights), once = weights_stay ? weights : 0;
    const int64_t products = rounds * chunks * taps * 2 * windows * (outputs / 64);
    const int64_t one = (rounds * of_tile + once) / bytes_of_one;
    const int64_t all = (tiles * of_tile + std::min(tiles, processors) * once) / bytes_of_all;
    return std::max({products, one, all}) + rounds * between_tiles;
  }
};

std::string constants_of(const cuda::ConvolutionShape& s, const CudaBoxConvolution::Tile& tile,
                         const BoxLayout& layout) {
  return fmt::format("#define LINES {}\n#define TILE_WIDTH {}\n#define PITCH {}\n#define BN {}\n", tile.lines,
                     tile.width, layout.pitch, layout.windows) +
         fmt::format("#define HEIGHT {}\n#define WIDTH {}\n#define CHUNKS {}\n#define BOXES {}\n#define SLOTS {}\n",
                     s.w[2], s.w[3], layout.chunks, layout.boxes, layout.slots) +
         fmt::format("#define SHARES_WINDOWS {}\n#define WEIGHTS_STAY {}\n#define SHARED_BYTES {}\n",
                     layout.shares_windows ? 1 : 0, layout.weights_stay ? 1 : 0, layout.shared_bytes()) +
         fmt::format("typedef {} T;\ntypedef Pack<T, 8> Some;\nconstexpr int ROW = {};\n", cuda::type_text(s.type),
                     row_bytes);
}

CudaBlocks blocks_of(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue,
                     const CudaBoxConvolution::Tile& tile) {
  const BoxLayout layout(s, tile);
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(std::min<int64_t>(layout.tiles, queue_of(run).gpu().processors()));
  grid.threads = threads;
  grid.shared_bytes = static_cast<unsigned>(layout.shared_bytes());
  const std::string functions =
      fmt::format("#define WARP_GROUPS 1\n#define HAS_BIAS {}\n#define HAS_FIXED_WEIGHTS {}\n",
                  epilogue.for_library().bias ? 1 : 0, s.has_fixed_weights ? 1 : 0) +
      constants_of(s, tile, layout) + std::string(tensor_core_functions) + group_products_text({layout.windows}, {}) +
      std::string(box_copies);
  return {run,
          "const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap w, T* y, const T* bias",
          functions,
          epilogue.in_kernel(convolution, "biases[half]", ""),
          {s.y[2], s.y[3], s.y[1], s.pads_begin[0], s.pads_begin[1], layout.across, layout.down, layout.parts,
           layout.tiles},
          grid,
          1};
}

}  // namespace

bool CudaBoxConvolution::takes(KernelRun& run, const cuda::ConvolutionShape& s) {
  constexpr int64_t most = int64_t{1} << 30, most_taps = 49;
  if (s.strides.size() != 2 || s.groups != 1 || run.has_input(3) || queue_of(run).gpu().major() != 9) return false;
  for (size_t axis = 0; axis < 2; ++axis)
    if (s.strides[axis] != 1 || s.dilations[axis] != 1 || s.pads_begin[axis] < 0) return false;
  const int64_t alignment =
      alignment_of({run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw())});
  return (s.type == ElementType::float16 || s.type == ElementType::bfloat16) && s.x[1] % 8 == 0 && s.y[1] % 8 == 0 &&
         alignment == 16 && s.w[2] * s.w[3] <= most_taps && std::max({s.x[1], s.y[1], s.y[2], s.y[3]}) < most;
}

std::vector<CudaBoxConvolution::Tile> CudaBoxConvolution::tiles(const cuda::ConvolutionShape& s, int64_t processors) {
  constexpr int64_t most_across = 8;
  constexpr size_t most_choices = 3;
  struct Choice {
    int64_t cycles;
    Tile tile;
  };
  std::vector<Choice> all;
  for (int64_t outputs = 64; outputs <= (s.y[1] > 64 ? 128 : 64); outputs += 64) {
    for (int64_t across = 1; across <= most_across; ++across) {
      for (int64_t lines = 1; lines <= s.y[2]; ++lines) {
        const Tile tile{lines, divide_up(s.y[3], across), outputs};
        const BoxLayout layout(s, tile);
        if (!layout.fits()) break;
        all.push_back({layout.cycles(processors), tile});
      }
    }
  }
  std::ranges::stable_sort(all, {}, &Choice::cycles);
  std::vector<Tile> best;
  for (const Choice& choice : all)
    if (best.size() < most_choices && choice.cycles * 10 <= all.front().cycles * 11) best.push_back(choice.tile);
  return best;
}

CudaBoxConvolution::CudaBoxConvolution(KernelRun& run, const cuda::ConvolutionShape& shape,
                                       const CudaEpilogue& epilogue, const Tile& tile)
    : shape_(shape), tile_(tile), blocks_(blocks_of(run, shape, epilogue, tile)) {}

void CudaBoxConvolution::run(KernelRun& run) const {
  const BoxLayout layout(shape_, tile_);
  const cuda::Gpu& gpu = queue_of(run).gpu();
  const int64_t images[] = {shape_.x[1], shape_.x[3], shape_.x[2], shape_.x[0]};
  const int64_t box[] = {channels_of_row, layout.pitch, layout.box_lines, 1};
  const int64_t weights[] = {shape_.x[1], layout.taps, shape_.y[1], 1};
  const int64_t tap[] = {channels_of_row, 1, tile_.outputs, 1};
  const cuda::TensorMap x = cuda::tensor_map(gpu, run.input(0).raw(), images, box, true);
  const cuda::TensorMap w = cuda::tensor_map(gpu, run.input(1).raw(), weights, tap, true);
  blocks_.run(run, {&x, &w}, {run.output(0).raw(), CudaEpilogue::bias_of(run)});
}

}  // namespace tenon::ops
