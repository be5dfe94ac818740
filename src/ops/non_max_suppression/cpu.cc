#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "ops/non_max_suppression/cpu_chosen_boxes.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

Box from_corners(const float* p) {
  Box b{std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3]), 0};
  b.area = (b.y2 - b.y1) * (b.x2 - b.x1);
  return b;
}

Box from_center(const float* p) {
  const float half_width = p[2] / 2, half_height = p[3] / 2;
  const float corners[] = {p[1] - half_height, p[0] - half_width, p[1] + half_height, p[0] + half_width};
  return from_corners(corners);
}

struct Candidate {
  float score;
  int64_t box;
};

// The better of two candidates comes first: the higher score, among equals the earlier box.
struct Worse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

class NonMaxSuppression final : public Kernel {
 public:
  explicit NonMaxSuppression(const NodeInfo& info)
      : by_center_(info.node().int_attribute("center_point_box", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor &boxes = run.input(0), &scores = run.input(1);
    const int64_t batches = scores.dim(0), classes = scores.dim(1), count = scores.dim(2);
    const int64_t most = std::min(scalar<int64_t>(run, 2, 0), count);
    const float overlap = scalar<float>(run, 3, 0);
    if (!(overlap >= 0 && overlap <= 1))
      fail(ErrorCode::invalid_value, "iou_threshold is {}; it must be between 0 and 1", overlap);
    const bool limited = given(run, 4);
    const float least = scalar<float>(run, 4, 0);
    std::vector<std::vector<int64_t>> selected(static_cast<size_t>(batches * classes));
    if (most > 0) {
      const float *corners = boxes.data<float>().data(), *values = scores.data<float>().data();
      run.threads().parallel_for(batches * classes, 1 + 4096 / (count + 1), [&](int64_t begin, int64_t end) {
        std::vector<Candidate> candidates;
        for (int64_t item = begin; item < end; ++item) {
          const float* row = values + item * count;
          candidates.clear();
          for (int64_t i = 0; i < count; ++i) {
            if (!limited || row[i] > least) candidates.push_back({row[i], i});
          }
          select(candidates, corners + item / classes * count * 4, overlap, most, selected[static_cast<size_t>(item)]);
        }
      });
    }
    int64_t total = 0;
    for (const auto& list : selected) total += static_cast<int64_t>(list.size());
    int64_t* out = run.output(0, Shape{total, 3}).mutable_data<int64_t>().data();
    for (int64_t item = 0; item < batches * classes; ++item) {
      for (int64_t box : selected[static_cast<size_t>(item)]) {
        *out++ = item / classes;
        *out++ = item % classes;
        *out++ = box;
      }
    }
  }

 private:
  static bool given(const KernelRun& run, size_t i) { return run.has_input(i) && run.input(i).elements() > 0; }
  template <typename T>
  static T scalar(const KernelRun& run, size_t i, T otherwise) {
    return given(run, i) ? run.data<T>(i)[0] : otherwise;
  }

  // Takes candidates best first, from a heap: with few boxes to choose, most are never sorted.
  void select(std::vector<Candidate>& candidates, const float* corners, float overlap, int64_t most,
              std::vector<int64_t>& result) const {
    std::erase_if(candidates, [](const Candidate& c) { return c.score != c.score; });
    std::make_heap(candidates.begin(), candidates.end(), Worse());
    std::vector<Box> boxes;
    for (const Candidate& c : candidates) boxes.push_back(box_at(corners + c.box * 4));
    ChosenBoxes chosen(boxes);
    while (!candidates.empty() && static_cast<int64_t>(result.size()) < most) {
      const int64_t box = candidates.front().box;
      std::pop_heap(candidates.begin(), candidates.end(), Worse());
      candidates.pop_back();
      const Box b = box_at(corners + box * 4);
      if (chosen.suppress(b, overlap)) continue;
      chosen.add(b);
      result.push_back(box);
    }
  }

  Box box_at(const float* p) const { return by_center_ ? from_center(p) : from_corners(p); }

  bool by_center_;
};

}  // namespace

void cpu_non_max_suppression(CpuKernels& list) {
  list.add("NonMaxSuppression", [](const NodeInfo& info) { return std::make_unique<NonMaxSuppression>(info); });
}

}  // namespace tenon::ops
