// The boxes that NonMaxSuppression has chosen so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/cpu_support/float_vectors.h"

namespace tenon::ops {

// Corners in order, and the area. Boxes whose area is not a finite number above 0 neither suppress nor are suppressed.
struct Box {
  float y1, x1, y2, x2, area;
  bool counts() const { return area > 0 && area < std::numeric_limits<float>::infinity(); }
};

// Boxes that are compared with another a vector at a time.
class BoxList {
 public:
  size_t size() const { return size_; }

  void add(const Box& b) {
    const size_t lane = size_ % lanes;
    if (lane == 0) groups_.push_back(nothing());
    Group& group = groups_.back();
    group.y1[lane] = b.y1, group.x1[lane] = b.x1, group.y2[lane] = b.y2, group.x2[lane] = b.x2;
    group.area[lane] = b.area;
    ++size_;
  }

  // Whether one of them covers more than `threshold` of the union with `b`.
  bool suppresses(const Box& b, float threshold) const {
    for (const Group& group : groups_) {
      const FloatVector height = least(group.y2, b.y2) - most(group.y1, b.y1);
      const FloatVector width = least(group.x2, b.x2) - most(group.x1, b.x1);
      const FloatVector common = most(height, 0.0f) * most(width, 0.0f);
      const auto hits = common > threshold * (b.area + group.area - common);
      int any = 0;
      for (size_t lane = 0; lane < lanes; ++lane) any |= hits[lane];
      if (any) return true;
    }
    return false;
  }

 private:
  static constexpr size_t lanes = sizeof(FloatVector) / sizeof(float);
  struct Group {
    FloatVector y1, x1, y2, x2, area;
  };
  // Boxes that have nothing in common with any.
  static Group nothing() {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const FloatVector zero = {};
    return {zero + infinity, zero + infinity, zero - infinity, zero - infinity, zero};
  }
  static FloatVector least(FloatVector a, float b) { return a < b ? a : FloatVector{} + b; }
  static FloatVector most(FloatVector a, float b) { return a > b ? a : FloatVector{} + b; }

  std::vector<Group> groups_;
  size_t size_ = 0;
};

// Boxes that suppress each other have columns in common. So boxes are kept by strips of columns too, about as wide as a
// box, and one that is in few strips is compared with those in the same ones.
class ChosenBoxes {
 public:
  // All boxes that will be asked about have to be among these.
  explicit ChosenBoxes(const std::vector<Box>& boxes) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    double widths = 0, count = 0;
    for (const Box& b : boxes) {
      if (!b.counts()) continue;
      low = std::min(low, b.x1), high = std::max(high, b.x2);
      widths += double{b.x2} - b.x1, ++count;
    }
    if (count == 0) return;
    const double strips = std::min({(double{high} - low) / (widths / count), most_strips, count});
    first_ = low;
    per_column_ = strips / (double{high} - low);
    strips_.resize(static_cast<size_t>(strips) + 1);
  }

  void add(const Box& b) {
    if (!b.counts()) return;
    all_.add(b);
    const auto [first, last] = strips_of(b);
    if (last - first >= most_strips_of_box) return wide_.add(b);
    for (size_t i = first; i <= last; ++i) strips_[i].add(b);
  }

  bool suppress(const Box& b, float threshold) const {
    if (!b.counts()) return false;
    const auto [first, last] = strips_of(b);
    size_t compared = wide_.size();
    for (size_t i = first; i <= last && compared < all_.size(); ++i) compared += strips_[i].size();
    if (compared >= all_.size()) return all_.suppresses(b, threshold);
    for (size_t i = first; i <= last; ++i) {
      if (strips_[i].suppresses(b, threshold)) return true;
    }
    return wide_.suppresses(b, threshold);
  }

 private:
  static constexpr double most_strips = 4096;
  static constexpr size_t most_strips_of_box = 8;

  size_t strip_of(float x) const {
    const double strip = (double{x} - first_) * per_column_;
    return std::min(static_cast<size_t>(std::max(strip, 0.0)), strips_.size() - 1);
  }
  std::pair<size_t, size_t> strips_of(const Box& b) const { return {strip_of(b.x1), strip_of(b.x2)}; }

  double first_ = 0, per_column_ = 0;
  std::vector<BoxList> strips_;
  BoxList wide_, all_;  // those in many strips, and all
};

}  // namespace tenon::ops
