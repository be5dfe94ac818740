#include <algorithm>
#include <bit>

#include "base/fail.h"
#include "base/rounding.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

constexpr std::string_view functions_text = R"(
struct Box { float y1, x1, y2, x2, area; };
inline Box box_at(const float* p) {
  float a = p[0], b = p[1], c = p[2], d = p[3];
  if (by_center) {
    const float half_width = p[2] / 2, half_height = p[3] / 2;
    a = p[1] - half_height; b = p[0] - half_width; c = p[1] + half_height; d = p[0] + half_width;
  }
  Box box = {a < c ? a : c, b < d ? b : d, a < c ? c : a, b < d ? d : b, 0};
  box.area = (box.y2 - box.y1) * (box.x2 - box.x1);
  return box;
}
// Whether they have more in common than `threshold` of their union. Boxes without an area suppress nothing.
inline bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = fminf(a.y2, b.y2) - fmaxf(a.y1, b.y1), width = fminf(a.x2, b.x2) - fmaxf(a.x1, b.x1);
  const float common = fmaxf(height, 0) * fmaxf(width, 0);
  return a.area > 0 && b.area > 0 && common > times(threshold, a.area + b.area - common);
}
// Bit by bit, which of 32 others it overlaps.
inline u32 overlapping(const Box& own, const Box* others, float threshold) {
  u32 bits = 0;
  #pragma unroll
  for (int k = 0; k < 32; ++k) bits |= (u32)overlap(own, others[k], threshold) << k;
  return bits;
}
)";

// An item is the boxes of one class of one image. They are sorted by score, in runs that are merged; among equals the
// earlier one is better. Then tile by tile, from the best on, boxes of a tile drop each other and all later ones.
constexpr int64_t tile = 512, words_of_tile = tile / 32, run_length = 1024;
constexpr int64_t enough_blocks = 1024;  // to keep a GPU busy

constexpr std::string_view sort_text = R"(
  __shared__ u64 sorted[RUN];
  const i64 count = v[0], item = blockIdx.x / v[1], first = blockIdx.x % v[1] * RUN;
  const float* own = scores + item * count;
  const float least_score = float_of((u32)v[2]);
  for (i64 i = threadIdx.x; i < RUN; i += blockDim.x) {
    const i64 place = first + i;
    const bool is_box = place < count && (v[3] ? own[place] > least_score : own[place] == own[place]);
    sorted[i] = is_box ? ordered(own[place]) << 32 | (u32)~place : 0;
    if (place < count) is_dropped[item * count + place] = 0;
  }
  if (first == 0 && threadIdx.x == 0) counts[item] = earlier_counts[item] = 0;
  for (i64 size = 2; size <= RUN; size *= 2) {
    for (i64 step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (i64 i = threadIdx.x; i < RUN / 2; i += blockDim.x) {
        const i64 a = 2 * i - (i & (step - 1)), b = a + step;
        const u64 key = sorted[a];
        if ((key < sorted[b]) != ((a & size) == 0)) continue;
        sorted[a] = sorted[b];
        sorted[b] = key;
      }
    }
  }
  __syncthreads();
  for (i64 i = threadIdx.x; i < RUN && first + i < count; i += blockDim.x) keys[item * count + first + i] = sorted[i];)";

// Where a key stands among those of its run and of the one that is merged with it.
constexpr std::string_view merge_text = R"(
    const i64 count = v[0], length = v[1], at = i % count, begin = at - at % (2 * length);
    const i64 middle = begin + length < count ? begin + length : count;
    const i64 end = middle + length < count ? middle + length : count;
    const u64* item = from + (i - at);
    const u64 key = item[at];
    const bool is_first = at < middle;
    i64 low = is_first ? middle : begin, high = is_first ? end : middle;
    while (low < high) {
      const i64 other = (low + high) / 2;
      if (item[other] > key || (item[other] == key && !is_first)) low = other + 1;
      else high = other;
    }
    to[i - at + at + low - middle] = key;)";

// Before a tile is chosen from: what the boxes that were chosen of the tile before it leave of all later ones, and
// which boxes of the tile overlap which. Blocks that share a tile take turns at 32 boxes that it is compared with.
constexpr std::string_view compare_text = R"(
  __shared__ Box others[32];
  const i64 count = v[0], most = v[2], later_tiles = v[4] - tile;
  const i64 part = blockIdx.x % parts, of = tile + blockIdx.x / parts % later_tiles, item = blockIdx.x / parts / later_tiles;
  const i64 first = earlier_counts[item], end = counts[item], at = of * TILE + threadIdx.x;
  const u64* own_keys = keys + item * count;
  if (end >= most || own_keys[of * TILE] == 0) return;
  const float* corners = boxes + item / v[1] * count * 4;
  const Box none = {0, 0, 0, 0, 0};
  bool is_box = at < count && own_keys[at] != 0 && !is_dropped[item * count + at];
  const Box own = is_box ? box_at(corners + (i64)(u32)~own_keys[at] * 4) : none;
  const float threshold = float_of((u32)v[3]);
  for (int word = part; word < WORDS; word += parts) {
    const i64 chosen = first + 32 * word + threadIdx.x;
    if (first + 32 * word < end) {
      __syncthreads();
      if (threadIdx.x < 32) others[threadIdx.x] = chosen < end ? box_at(corners + selected[item * most + chosen] * 4) : none;
      __syncthreads();
      if (is_box && overlapping(own, others, threshold)) {
        is_dropped[item * count + at] = 1;
        is_box = false;
      }
    }
    if (of > tile) continue;
    const i64 other = tile * TILE + 32 * word + threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32) others[threadIdx.x] = other < count && own_keys[other] ? box_at(corners + (i64)(u32)~own_keys[other] * 4) : none;
    __syncthreads();
    const int earlier = (int)threadIdx.x - 32 * word;
    u32 better = 0;
    if (is_box && earlier > 0)
      better = overlapping(own, others, threshold) & (earlier < 32 ? (1u << earlier) - 1 : 0xffffffff);
    overlaps[(item * WORDS + word) * TILE + threadIdx.x] = better;
  }
)";

// A box is decided once all better ones are that it overlaps: it is dropped where one of these is chosen. Few rounds
// decide all boxes of a tile.
constexpr std::string_view choose_text = R"(
  __shared__ u32 chosen[WORDS], open[WORDS];
  const int word = threadIdx.x / 32;
  const u32 bit = 1u << threadIdx.x % 32;
  const i64 count = v[0], most = v[2], item = blockIdx.x, at = tile * TILE + threadIdx.x, before = counts[item];
  const u64 key = at < count && before < most ? keys[item * count + at] : 0;
  bool is_open = key && !is_dropped[item * count + at];
  u32 better[WORDS];  // that it overlaps
  #pragma unroll
  for (int w = 0; w < WORDS; ++w) better[w] = is_open ? overlaps[(item * WORDS + w) * TILE + threadIdx.x] : 0;
  if (threadIdx.x < WORDS) chosen[threadIdx.x] = open[threadIdx.x] = 0;
  __syncthreads();
  if (is_open) atomicAdd(&open[word], bit);
  __syncthreads();
  for (bool goes_on = true; goes_on;) {
    u32 known = 0, unknown = 0, left = 0;
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) {
      known |= better[w] & chosen[w];
      unknown |= better[w] & open[w];
      left |= open[w];
    }
    goes_on = left != 0;
    __syncthreads();
    if (is_open && (known || !unknown)) {
      is_open = false;
      atomicAdd(&open[word], 0 - bit);
      if (!known) atomicAdd(&chosen[word], bit);
    }
    __syncthreads();
  }
  i64 rank = before, end = before;
  for (int w = 0; w < WORDS; ++w) {
    if (w < word) rank += __popc(chosen[w]);
    end += __popc(chosen[w]);
  }
  rank += __popc(chosen[word] & (bit - 1));
  if ((chosen[word] & bit) && rank < most) selected[item * most + rank] = (u32)~key;
  if (threadIdx.x > 0) return;
  counts[item] = end < most ? end : most;
  earlier_counts[item] = before;)";

bool given(const KernelRun& run, size_t i) { return run.has_input(i) && run.input(i).elements() > 0; }
float number_of(const KernelRun& run, size_t i) { return given(run, i) ? run.data<float>(i)[0] : 0; }

int64_t bits(float x) { return static_cast<int64_t>(std::bit_cast<uint32_t>(x)); }

cuda::Grid grid_of(int64_t blocks) {
  cuda::Grid grid;
  grid.threads = tile;
  grid.blocks[0] = static_cast<unsigned>(blocks);
  return grid;
}

// Of the boxes of each item: the order of the score and, below it, the complement of the place. 0 is no box. Nothing is
// dropped yet, and no box chosen.
std::shared_ptr<void> sorted_keys(KernelRun& run, const Tensor& scores, void* is_dropped, void* counts,
                                  void* earlier_counts) {
  const int64_t count = scores.dim(2), items = scores.dim(0) * scores.dim(1), runs = divide_up(count, run_length);
  cuda::GpuQueue& queue = queue_of(run);
  auto keys = queue.allocate(items * count * 8), merged = runs > 1 ? queue.allocate(items * count * 8) : nullptr;
  const CudaBlocks sort(run, "const float* scores, u64* keys, u8* is_dropped, i64* counts, i64* earlier_counts",
                        fmt::format("#define RUN {}\n{}", run_length, ordered_text()), sort_text,
                        {count, runs, bits(number_of(run, 4)), given(run, 4)}, grid_of(items * runs));
  sort.run(run, {scores.raw(), keys.get(), is_dropped, counts, earlier_counts});
  for (int64_t length = run_length; length < count; length *= 2) {
    const CudaLoop merge(run, items * count, "const u64* from, u64* to", merge_text, {count, length});
    merge.run(run, {keys.get(), merged.get()});
    std::swap(keys, merged);
  }
  return keys;
}

void run_non_max_suppression(KernelRun& run) {
  const Tensor &boxes = run.input(0), &scores = run.input(1);
  const int64_t classes = scores.dim(1), count = scores.dim(2), items = scores.dim(0) * classes;
  const int64_t most = std::min(given(run, 2) ? run.ints(2)[0] : 0, count);
  const float overlap = number_of(run, 3);
  if (!(overlap >= 0 && overlap <= 1))
    fail(ErrorCode::invalid_value, "iou_threshold is {}; it must be between 0 and 1", overlap);
  if (most <= 0 || items == 0) {
    run.output(0, Shape{0, 3});
    return;
  }
  cuda::GpuQueue& queue = queue_of(run);
  const auto selected = queue.allocate(items * most * 8), counts = queue.allocate((items + 1) * 8),
             earlier_counts = queue.allocate(items * 8), is_dropped = queue.allocate(items * count),
             overlaps = queue.allocate(items * tile * words_of_tile * 4);
  const auto keys = sorted_keys(run, scores, is_dropped.get(), counts.get(), earlier_counts.get());
  const int64_t tiles = divide_up(count, tile);
  const std::string functions =
      fmt::format("{}#define TILE {}\n#define WORDS {}\nconstexpr bool by_center = {};\n{}", exact_product_text(), tile,
                  words_of_tile, run.node().int_attribute("center_point_box", 0) != 0, functions_text);
  const std::vector<int64_t> numbers{count, classes, most, bits(overlap), tiles};
  const CudaBlocks choose(run,
                          "i64 tile, const u64* keys, const u8* is_dropped, const u32* overlaps, i64* selected, "
                          "i64* counts, i64* earlier_counts",
                          functions, choose_text, numbers, grid_of(items));
  CudaBlocks compare(run,
                     "i64 tile, i64 parts, const float* boxes, const u64* keys, u8* is_dropped, u32* overlaps, "
                     "const i64* selected, const i64* counts, const i64* earlier_counts",
                     functions, compare_text, numbers, grid_of(items));
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t compared = items * (tiles - i),
                  parts = std::clamp<int64_t>(enough_blocks / compared, 1, words_of_tile);
    compare.set_blocks(compared * parts);
    compare.run(run, {&i, &parts},
                {boxes.raw(), keys.get(), is_dropped.get(), overlaps.get(), selected.get(), counts.get(),
                 earlier_counts.get()});
    choose.run(run, {&i},
               {keys.get(), is_dropped.get(), overlaps.get(), selected.get(), counts.get(), earlier_counts.get()});
  }
  // Where the boxes of each item begin, and how many there are.
  const CudaLoop add_up(run, 1, "i64* counts",
                        "i64 sum = 0;\n    for (i64 k = 0; k <= v[0]; ++k) { const i64 own = k < v[0] ? counts[k] : 0; "
                        "counts[k] = sum; sum += own; }",
                        {items});
  add_up.run(run, {counts.get()});
  int64_t total = 0;
  queue.download(&total, static_cast<const int64_t*>(counts.get()) + items, sizeof total);
  Tensor& y = run.output(0, Shape{total, 3});
  const CudaLoop write(
      run, total == 0 ? 0 : items * most, "const i64* selected, const i64* counts, i64* y",
      "const i64 item = i / v[0], k = i % v[0];\n    if (k >= counts[item + 1] - counts[item]) continue;\n    "
      "i64* to = y + (counts[item] + k) * 3;\n    to[0] = item / v[1]; to[1] = item % v[1]; to[2] = selected[i];",
      {most, classes});
  write.run(run, {selected.get(), counts.get(), y.raw()});
}

}  // namespace

void cuda_non_max_suppression(CudaKernels& list) {
  list.add_simple("NonMaxSuppression", run_non_max_suppression, {.host_inputs = {2, 3, 4}});
}

}  // namespace tenon::ops
