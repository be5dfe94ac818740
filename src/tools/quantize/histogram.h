#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tenon/tools/quantize.h"

namespace tenon::tools {

// How often numbers occur, seen once, in memory that does not grow with their count. Bins are a power of two wide and
// start at multiples of it; they become twice as wide when there would be too many.
class Histogram {
 public:
  static constexpr int64_t most_bins = 4096;

  void add(std::span<const float> numbers);

  int64_t count() const { return count_; }  // of finite numbers
  double min() const { return min_; }
  double max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double deviation() const;

  double width() const { return width_; }
  // The lowest number of a bin.
  double start_of(size_t bin) const { return static_cast<double>(first_ + static_cast<int64_t>(bin)) * width_; }
  std::span<const int64_t> bins() const { return bins_; }

  // The number that a share of all numbers is below.
  double quantile(double share) const;
  // Share of the numbers outside a range, as far as bins tell.
  double share_outside(double low, double high) const;

 private:
  void make_room(double low, double high);
  void widen();

  std::vector<int64_t> bins_;
  int64_t first_ = 0;  // bins_[0] starts at first_ * width_
  double width_ = 0;   // 0: no number but 0 was seen yet
  int64_t count_ = 0, zeros_ = 0;
  double min_ = 0, max_ = 0, sum_ = 0, squares_ = 0;
};

// The numbers that codes stand for.
struct Range {
  double low = 0, high = 0;
};

// What of the numbers the codes of a tensor should span. `levels` is how many codes there are; a range that is
// `symmetric` reaches as far down as up.
Range choose_range(const Histogram& histogram, RangeMethod method, double percentile, int levels, bool symmetric);

}  // namespace tenon::tools
