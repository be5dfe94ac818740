#include "tools/quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::tools {
namespace {

int64_t bin_of(double number, double width) { return static_cast<int64_t>(std::floor(number / width)); }

}  // namespace

double Histogram::deviation() const {
  if (count_ == 0) return 0;
  const double average = mean();
  return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - average * average));
}

void Histogram::widen() {
  // Bins 2 k and 2 k + 1 become bin k.
  const int64_t first = first_ >= 0 ? first_ / 2 : (first_ - 1) / 2;
  std::vector<int64_t> merged((bins_.size() + 2) / 2 + 1, 0);
  for (size_t i = 0; i < bins_.size(); ++i) {
    const int64_t old = first_ + static_cast<int64_t>(i);
    merged[static_cast<size_t>((old >= 0 ? old / 2 : (old - 1) / 2) - first)] += bins_[i];
  }
  bins_ = std::move(merged);
  first_ = first;
  width_ *= 2;
}

// Bins for everything from `low` to `high`.
void Histogram::make_room(double low, double high) {
  const double largest = std::max(std::abs(low), std::abs(high));
  if (largest == 0) return;
  if (width_ == 0) {
    width_ = std::exp2(std::ceil(std::log2(largest)) - std::log2(most_bins / 4));
    first_ = bin_of(low, width_);
    bins_.assign(1, 0);
  }
  while (std::max(bin_of(high, width_), first_ + std::ssize(bins_) - 1) - std::min(bin_of(low, width_), first_) >=
         most_bins)
    widen();
  const int64_t below = first_ - bin_of(low, width_), above = bin_of(high, width_) - (first_ + std::ssize(bins_) - 1);
  if (below > 0) {
    bins_.insert(bins_.begin(), static_cast<size_t>(below), 0);
    first_ -= below;
  }
  if (above > 0) bins_.insert(bins_.end(), static_cast<size_t>(above), 0);
}

void Histogram::add(std::span<const float> numbers) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (float x : numbers) {
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (low > high) return;
  min_ = count_ == 0 ? low : std::min<double>(min_, low);
  max_ = count_ == 0 ? high : std::max<double>(max_, high);
  make_room(low, high);
  const double per_width = width_ == 0 ? 0 : 1 / width_;
  double sum = 0, squares = 0;
  for (float number : numbers) {
    if (!std::isfinite(number)) continue;
    const auto x = static_cast<double>(number);
    ++count_;
    sum += x;
    squares += x * x;
    if (x == 0)
      ++zeros_;
    else
      ++bins_[static_cast<size_t>(static_cast<int64_t>(std::floor(x * per_width)) - first_)];
  }
  sum_ += sum;
  squares_ += squares;
}

double Histogram::quantile(double share) const {
  if (width_ == 0) return 0;
  double left = share * static_cast<double>(count_);
  bool zeros_passed = false;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (!zeros_passed && start_of(i) >= 0) {
      left -= static_cast<double>(zeros_);
      zeros_passed = true;
      if (left <= 0) return 0;
    }
    const auto here = static_cast<double>(bins_[i]);
    if (left <= here && here > 0) return std::clamp(start_of(i) + width_ * left / here, min_, max_);
    left -= here;
  }
  return max_;
}

double Histogram::share_outside(double low, double high) const {
  double outside = 0;
  for (size_t i = 0; i < bins_.size(); ++i) {
    const double start = start_of(i), end = start + width_;
    const double inside = std::max(0.0, std::min(end, high) - std::max(start, low)) / width_;
    outside += static_cast<double>(bins_[i]) * (1 - inside);
  }
  // What is in the same bin as an end of the range that nothing lies beyond is inside.
  if (low <= min_ && high >= max_) return 0;
  return count_ == 0 ? 0 : outside / static_cast<double>(count_);
}

namespace {

constexpr int candidates = 128;  // ranges that are tried

// The part of all numbers that is tried: the whole range, cut at a magnitude.
Range cut(const Histogram& histogram, double magnitude) {
  return {std::max(std::min(histogram.min(), 0.0), -magnitude), std::min(std::max(histogram.max(), 0.0), magnitude)};
}

double largest_magnitude(const Histogram& histogram) {
  return std::max(std::abs(histogram.min()), std::abs(histogram.max()));
}

// What squares of errors add up to: those of rounding, and of what is cut off.
double squared_error(const Histogram& histogram, const Range& range, int levels, bool symmetric) {
  const double span = symmetric ? 2 * std::max(-range.low, range.high) : range.high - range.low;
  const double step = span / (levels - 1);
  double error = 0;
  for (size_t i = 0; i < histogram.bins().size(); ++i) {
    const auto count = static_cast<double>(histogram.bins()[i]);
    if (count == 0) continue;
    const double number = histogram.start_of(i) + histogram.width() / 2;
    const double beyond = std::max({0.0, range.low - number, number - range.high});
    error += count * (beyond > 0 ? beyond * beyond : step * step / 12);
  }
  return error;
}

// How much the distribution of codes tells less than that of the numbers: the Kullback-Leibler divergence between the
// histogram with what is cut off in its outermost bins, and the same with each code's numbers spread evenly.
double divergence(const Histogram& histogram, const Range& range, int levels) {
  const auto bins = histogram.bins();
  std::vector<double> inside;  // counts of the bins in the range
  double below = 0, above = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    const double number = histogram.start_of(i) + histogram.width() / 2;
    const auto count = static_cast<double>(bins[i]);
    if (number < range.low)
      below += count;
    else if (number > range.high)
      above += count;
    else
      inside.push_back(count);
  }
  double total_inside = 0, sum = 0;
  for (double count : inside) total_inside += count;
  if (total_inside == 0) return std::numeric_limits<double>::infinity();
  const double total = total_inside + below + above;
  std::vector<double> expected = inside;
  expected.front() += below;
  expected.back() += above;
  const auto size = static_cast<double>(inside.size());
  const auto codes = std::min<size_t>(static_cast<size_t>(levels), inside.size());
  for (size_t code = 0; code < codes; ++code) {
    const auto begin = static_cast<size_t>(size * static_cast<double>(code) / static_cast<double>(codes));
    const auto end = static_cast<size_t>(size * static_cast<double>(code + 1) / static_cast<double>(codes));
    double in_code = 0, occupied = 0;
    for (size_t i = begin; i < end; ++i) {
      in_code += inside[i];
      occupied += inside[i] > 0;
    }
    for (size_t i = begin; i < end; ++i) {
      if (expected[i] == 0) continue;
      // Bins that only hold what is cut off count as if one number were there.
      const double spread = inside[i] > 0 ? in_code / occupied : 1e-4;
      sum += expected[i] / total * std::log(expected[i] / total * total_inside / spread);
    }
  }
  return sum;
}

template <typename Cost>
Range cheapest(const Histogram& histogram, Cost cost) {
  const double largest = largest_magnitude(histogram);
  Range best = cut(histogram, largest);
  double least = cost(best);
  for (int i = candidates - 1; i >= candidates / 8; --i) {
    const Range range = cut(histogram, largest * i / candidates);
    const double error = cost(range);
    if (error < least) {
      least = error;
      best = range;
    }
  }
  return best;
}

}  // namespace

Range choose_range(const Histogram& histogram, RangeMethod method, double percentile, int levels, bool symmetric) {
  if (largest_magnitude(histogram) == 0) return {};
  switch (method) {
    case RangeMethod::percentile:
      return {std::min(0.0, histogram.quantile(1 - percentile / 100)),
              std::max(0.0, histogram.quantile(percentile / 100))};
    case RangeMethod::entropy:
      return cheapest(histogram, [&](const Range& range) { return divergence(histogram, range, levels); });
    case RangeMethod::mse:
      return cheapest(histogram,
                      [&](const Range& range) { return squared_error(histogram, range, levels, symmetric); });
    case RangeMethod::minmax:
    case RangeMethod::moving_average:
      break;
  }
  return {std::min(0.0, histogram.min()), std::max(0.0, histogram.max())};
}

}  // namespace tenon::tools
