#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Corners in order, and the area.
struct Box {
  float y1, x1, y2, x2, area;
};

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

// The boxes chosen so far, one array per coordinate so that a candidate is compared with several at a time.
class Chosen {
 public:
  void clear() {
    for (auto* list : {&y1_, &x1_, &y2_, &x2_, &area_}) list->clear();
  }
  void add(const Box& b) {
    y1_.push_back(b.y1);
    x1_.push_back(b.x1);
    y2_.push_back(b.y2);
    x2_.push_back(b.x2);
    area_.push_back(b.area);
  }
  // Whether a chosen box covers more than `threshold` of the union with `b`.
  bool suppresses(const Box& b, float threshold) const {
    constexpr size_t block = 16;
    const size_t n = area_.size();
    for (size_t first = 0; first < n; first += block) {
      const size_t count = std::min(block, n - first);
      int hits = 0;
      for (size_t i = first; i < first + count; ++i) {
        const float height = std::min(b.y2, y2_[i]) - std::max(b.y1, y1_[i]);
        const float width = std::min(b.x2, x2_[i]) - std::max(b.x1, x1_[i]);
        const float common = std::max(height, 0.0f) * std::max(width, 0.0f);
        // Boxes without an area suppress nothing.
        const float least = b.area > 0 && area_[i] > 0 ? threshold * (b.area + area_[i] - common) : INFINITY;
        hits += common > least;
      }
      if (hits) return true;
    }
    return false;
  }

 private:
  std::vector<float> y1_, x1_, y2_, x2_, area_;
};

// The boxes chosen so far, by where they are from left to right: boxes with anything in common share a column.
class ChosenByColumn {
 public:
  // `left` and `right` are those of all boxes that will be given.
  void start(float left, float right) {
    for (Chosen& list : lists_) list.clear();
    const float width = right - left;
    left_ = left;
    scale_ = width > 0 && std::isfinite(width) ? columns / width : 0.0f;
  }
  void add(const Box& b) {
    const auto [first, last] = columns_of(b);
    if (last - first >= narrow) return lists_[columns].add(b);
    for (int column = first; column <= last; ++column) lists_[static_cast<size_t>(column)].add(b);
  }
  bool suppresses(const Box& b, float threshold) const {
    if (lists_[columns].suppresses(b, threshold)) return true;
    const auto [first, last] = columns_of(b);
    for (int column = first; column <= last; ++column) {
      if (lists_[static_cast<size_t>(column)].suppresses(b, threshold)) return true;
    }
    return false;
  }

 private:
  static constexpr int columns = 128, narrow = 4;

  std::pair<int, int> columns_of(const Box& b) const { return {column_of(b.x1), column_of(b.x2)}; }
  // Further right is never a smaller column.
  int column_of(float x) const {
    const float column = (x - left_) * scale_;
    return column >= columns ? columns - 1 : column > 0 ? static_cast<int>(column) : 0;
  }

  float left_ = 0, scale_ = 0;
  std::array<Chosen, columns + 1> lists_;  // the last one: boxes of many columns
};

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
        ChosenByColumn chosen;
        for (int64_t item = begin; item < end; ++item) {
          const float* row = values + item * count;
          find_candidates(row, count, limited, least, candidates);
          select(candidates, corners + item / classes * count * 4, overlap, most, chosen,
                 selected[static_cast<size_t>(item)]);
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

  // The boxes with a score above `least`, or with one that is a number. Without branches, which nothing could foresee.
  static void find_candidates(const float* scores, int64_t count, bool limited, float least,
                              std::vector<Candidate>& candidates) {
    candidates.resize(static_cast<size_t>(count));
    size_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
      candidates[found] = {scores[i], i};
      found += limited ? scores[i] > least : scores[i] == scores[i];
    }
    candidates.resize(found);
  }

  // Takes candidates best first: sorted, or from a heap where so few are to be chosen that most are never reached.
  void select(std::vector<Candidate>& candidates, const float* corners, float overlap, int64_t most,
              ChosenByColumn& chosen, std::vector<int64_t>& result) const {
    const bool is_heap = most < std::ssize(candidates) / 8;
    if (is_heap)
      std::make_heap(candidates.begin(), candidates.end(), Worse());
    else
      std::sort(candidates.begin(), candidates.end(), Worse());
    constexpr int64_t few = 700;  // boxes that are sooner compared with all than with those of their columns
    float left = 0, right = 0;
    if (most > few) std::tie(left, right) = span_of(candidates, corners);
    chosen.start(left, right);
    while (!candidates.empty() && std::ssize(result) < most) {
      if (is_heap) std::pop_heap(candidates.begin(), candidates.end(), Worse());
      const int64_t box = candidates.back().box;
      candidates.pop_back();
      const Box b = box_at(corners, box);
      if (chosen.suppresses(b, overlap)) continue;
      chosen.add(b);
      result.push_back(box);
    }
  }

  // From the left of all boxes to the right of all.
  std::pair<float, float> span_of(const std::vector<Candidate>& candidates, const float* corners) const {
    float left = INFINITY, right = -INFINITY;
    for (const Candidate& candidate : candidates) {
      const Box b = box_at(corners, candidate.box);
      left = std::min(left, b.x1);
      right = std::max(right, b.x2);
    }
    return {left, right};
  }

  Box box_at(const float* corners, int64_t box) const {
    return by_center_ ? from_center(corners + box * 4) : from_corners(corners + box * 4);
  }

  bool by_center_;
};

}  // namespace

void cpu_non_max_suppression(CpuKernels& list) {
  list.add("NonMaxSuppression", [](const NodeInfo& info) { return std::make_unique<NonMaxSuppression>(info); });
}

}  // namespace tenon::ops
