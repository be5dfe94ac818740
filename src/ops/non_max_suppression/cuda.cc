#include <algorithm>
#include <bit>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

constexpr const char* functions_text = R"(
struct Box { float y1, x1, y2, x2, area; };
inline Box box_at(const float* p, bool by_center) {
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
inline bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
  const float width = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
  const float common = (height > 0 ? height : 0) * (width > 0 ? width : 0);
  return a.area > 0 && b.area > 0 && common > times(threshold, a.area + b.area - common);
}
)";

// A block has the boxes of one class of one image: it takes the best that is left and drops all that overlap it, as
// often as boxes are wanted. Among equals the earlier one is better.
constexpr const char* select_text = R"(
  __shared__ float best_scores[256];
  __shared__ i64 best_boxes[256];
  const i64 item = blockIdx.x, count = v[0];
  const float* corners = boxes + item / v[1] * count * 4;
  const float* own = scores + item * count;
  u8* left = alive + item * count;
  const float threshold = float_of((u32)v[3]), least_score = float_of((u32)v[4]);
  for (i64 i = threadIdx.x; i < count; i += 256) left[i] = v[5] ? own[i] > least_score : own[i] == own[i];
  i64 chosen = 0;
  for (; chosen < v[2]; ++chosen) {
    __syncthreads();
    float score = 0;
    i64 box = -1;
    for (i64 i = threadIdx.x; i < count; i += 256) {
      if (left[i] && (box < 0 || own[i] > score)) { score = own[i]; box = i; }
    }
    best_scores[threadIdx.x] = score;
    best_boxes[threadIdx.x] = box;
    for (int half = 128; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x >= half) continue;
      const float other = best_scores[threadIdx.x + half], mine = best_scores[threadIdx.x];
      const i64 other_box = best_boxes[threadIdx.x + half], my_box = best_boxes[threadIdx.x];
      if (other_box >= 0 && (my_box < 0 || other > mine || (other == mine && other_box < my_box))) {
        best_scores[threadIdx.x] = other;
        best_boxes[threadIdx.x] = other_box;
      }
    }
    __syncthreads();
    const i64 best = best_boxes[0];
    if (best < 0) break;
    if (threadIdx.x == 0) selected[item * v[2] + chosen] = best;
    const Box taken = box_at(corners + best * 4, by_center);
    for (i64 i = threadIdx.x; i < count; i += 256) {
      if (left[i] && (i == best || overlaps(box_at(corners + i * 4, by_center), taken, threshold))) left[i] = 0;
    }
  }
  if (threadIdx.x == 0) counts[item] = chosen;)";

bool given(const KernelRun& run, size_t i) { return run.has_input(i) && run.input(i).elements() > 0; }
float number_of(const KernelRun& run, size_t i) { return given(run, i) ? run.data<float>(i)[0] : 0; }

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
  const auto alive = queue.allocate(items * count), selected = queue.allocate(items * most * 8),
             counts = queue.allocate((items + 1) * 8);
  cuda::Grid grid;
  grid.threads = 256;
  grid.blocks[0] = static_cast<unsigned>(items);
  auto bits = [](float x) { return static_cast<int64_t>(std::bit_cast<uint32_t>(x)); };
  const CudaBlocks select(
      run, "const float* boxes, const float* scores, u8* alive, i64* selected, i64* counts",
      std::string(exact_product_text()) +
          fmt::format("constexpr bool by_center = {};\n", run.node().int_attribute("center_point_box", 0) != 0) +
          functions_text,
      select_text, {count, classes, most, bits(overlap), bits(number_of(run, 4)), given(run, 4)}, grid);
  select.run(run, {boxes.raw(), scores.raw(), alive.get(), selected.get(), counts.get()});
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
