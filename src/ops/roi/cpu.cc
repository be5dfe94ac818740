#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

int64_t checked_batch(double index, int64_t batches, int64_t region) {
  if (!(index >= 0 && index < static_cast<double>(batches))) {
    fail(ErrorCode::invalid_value, "region {} is of image {}; there are {} images", region, index, batches);
  }
  return static_cast<int64_t>(index);
}

// A coordinate that is sampled: its two neighbours on one axis with their weights, which are 0 outside the image.
template <typename T>
struct Sample {
  int64_t low, high;
  T low_weight, high_weight;
};

template <typename T>
Sample<T> sample_at(T x, int64_t size) {
  if (!(x >= -1 && x <= static_cast<T>(size))) return {0, 0, 0, 0};
  x = std::max(x, T(0));
  const int64_t low = std::min(static_cast<int64_t>(x), size - 1), high = std::min(low + 1, size - 1);
  const T part = low == size - 1 ? 0 : x - static_cast<T>(low);
  return {low, high, 1 - part, part};
}

// Where an axis of a region is sampled: `per_bin` times in each bin.
template <typename T>
std::vector<Sample<T>> sample_axis(T begin, T bin, int64_t bins, int64_t per_bin, int64_t size) {
  std::vector<Sample<T>> samples;
  samples.reserve(static_cast<size_t>(bins * per_bin));
  for (int64_t b = 0; b < bins; ++b) {
    for (int64_t i = 0; i < per_bin; ++i) {
      const T within = (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(per_bin);
      samples.push_back(sample_at(begin + static_cast<T>(b) * bin + within, size));
    }
  }
  return samples;
}

// The columns of an image that samples read. Where these are not much fewer than all between the first and the last,
// all of them, so that they lie side by side.
class Columns {
 public:
  template <typename T>
  explicit Columns(std::vector<Sample<T>>& samples) {
    for (const Sample<T>& s : samples) {
      if (s.low_weight == 0 && s.high_weight == 0) continue;
      first_ = std::min(first_, s.low);
      last_ = std::max(last_, s.high);
    }
    if (last_ < 0) first_ = last_ = 0;
    spread_ = last_ - first_ > 8 * std::ssize(samples);
    for (Sample<T>& s : samples) {
      s.low = place_of(std::max(s.low, first_));
      s.high = place_of(std::max(s.high, first_));
    }
  }

  int64_t count() const { return spread_ ? std::ssize(list_) : last_ - first_ + 1; }

  // fold(place, element of a, element of b) for each of the columns of two rows of an image.
  template <typename T, typename Fold>
  void each(const T* a, const T* b, Fold fold) const {
    if (spread_) {
      for (size_t i = 0; i < list_.size(); ++i) fold(static_cast<int64_t>(i), a[list_[i]], b[list_[i]]);
    } else {
      a += first_, b += first_;
      for (int64_t i = 0, n = count(); i < n; ++i) fold(i, a[i], b[i]);
    }
  }

 private:
  int64_t place_of(int64_t column) {
    if (!spread_) return column - first_;
    list_.push_back(column);
    return std::ssize(list_) - 1;
  }

  int64_t first_ = std::numeric_limits<int64_t>::max(), last_ = -1;
  bool spread_ = false;
  std::vector<int64_t> list_;
};

struct Sum {
  template <typename T>
  static T fold(T a, T b) {
    return a + b;
  }
};

struct Maximum {
  template <typename T>
  static T fold(T a, T b) {
    return a < b ? b : a;
  }
};

// Folds the samples of each bin, first down the columns, then along the row that makes: as weights are products of
// one for the row and one for the column, and none is negative, that is the same as folding sample by sample.
template <typename T, typename Operation>
class BinPooling {
 public:
  BinPooling(std::vector<Sample<T>> rows, int64_t down, std::vector<Sample<T>> columns, int64_t across)
      : rows_(std::move(rows)),
        columns_(std::move(columns)),
        read_(columns_),
        down_(down),
        across_(across),
        folded_(static_cast<size_t>(read_.count())) {}

  // All bins of one channel; each is multiplied by `scale`.
  void run(const T* plane, int64_t width, T scale, T* y) {
    const size_t down = static_cast<size_t>(down_), across = static_cast<size_t>(across_);
    for (size_t row = 0; row < rows_.size(); row += down) {
      fold_rows(plane, width, row);
      for (size_t column = 0; column < columns_.size(); column += across) *y++ = fold_bin(column) * scale;
    }
  }

 private:
  void fold_rows(const T* plane, int64_t width, size_t first) {
    T* folded = folded_.data();
    for (size_t i = first; i < first + static_cast<size_t>(down_); ++i) {
      const Sample<T>& s = rows_[i];
      const T low = s.low_weight, high = s.high_weight;
      const T *a = plane + s.low * width, *b = plane + s.high * width;
      if (i == first)
        read_.each(a, b, [=](int64_t at, T x, T y) { folded[at] = Operation::fold(x * low, y * high); });
      else
        read_.each(a, b, [=](int64_t at, T x, T y) {
          folded[at] = Operation::fold(folded[at], Operation::fold(x * low, y * high));
        });
    }
  }

  T fold_bin(size_t first) const {
    const Sample<T>* s = columns_.data() + first;
    T result = part(*s);
    for (int64_t i = 1; i < across_; ++i) result = Operation::fold(result, part(s[i]));
    return result;
  }
  T part(const Sample<T>& s) const {
    return Operation::fold(folded_[static_cast<size_t>(s.low)] * s.low_weight,
                           folded_[static_cast<size_t>(s.high)] * s.high_weight);
  }

  std::vector<Sample<T>> rows_, columns_;
  Columns read_;
  int64_t down_, across_;
  std::vector<T> folded_;
};

class RoiAlign final : public Kernel {
 public:
  explicit RoiAlign(const NodeInfo& info)
      : scale_(info.node().float_attribute("spatial_scale", 1)),
        sampling_ratio_(info.node().int_attribute("sampling_ratio", 0)) {
    std::string mode = info.node().string_attribute("mode", "avg");
    if (mode != "avg" && mode != "max") fail(ErrorCode::invalid_attribute, "mode is '{}'; it may be avg or max", mode);
    maximum_ = mode == "max";
    std::string transform = info.node().string_attribute("coordinate_transformation_mode", "half_pixel");
    if (transform != "half_pixel" && transform != "output_half_pixel") {
      fail(ErrorCode::invalid_attribute,
           "coordinate_transformation_mode is '{}'; it may be half_pixel or output_half_pixel", transform);
    }
    half_pixel_ = transform == "half_pixel";
    if (sampling_ratio_ < 0)
      fail(ErrorCode::invalid_attribute, "sampling_ratio is {}; it must not be negative", sampling_ratio_);
  }

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      const T *x = arguments.in(0), *rois = arguments.in(1);
      T* y = arguments.out(0);
      const Shape& shape = run.input(0).shape();
      const Shape& out = run.output(0).shape();
      auto batches = run.data<int64_t>(2);
      run.threads().parallel_for(out[0], 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t batch = checked_batch(static_cast<double>(batches[static_cast<size_t>(r)]), shape[0], r);
          align(x + batch * shape.elements(1, 4), shape, rois + r * 4, y + r * out.elements(1, 4), out[2], out[3], r);
        }
      });
      arguments.finish();
    });
  }

 private:
  template <typename T>
  void align(const T* x, const Shape& shape, const T* roi, T* y, int64_t rows, int64_t columns, int64_t region) const {
    const T scale = static_cast<T>(scale_), shift = half_pixel_ ? T(0.5) : T(0);
    const T x1 = roi[0] * scale - shift, y1 = roi[1] * scale - shift;
    T width = roi[2] * scale - shift - x1, height = roi[3] * scale - shift - y1;
    if (!half_pixel_) {
      width = std::max(width, T(1));
      height = std::max(height, T(1));
    }
    const T bin_height = height / static_cast<T>(rows), bin_width = width / static_cast<T>(columns);
    const int64_t across = grid(bin_width, region), down = grid(bin_height, region);
    const int64_t per_bin = across * down;
    if (checked_samples(rows, columns, per_bin) > most_samples) {
      fail(ErrorCode::invalid_value, "region {} is {} x {} pixels, too large to sample", region, height, width);
    }
    const int64_t plane = shape[2] * shape[3];
    if (per_bin == 0 || plane == 0) {
      std::fill_n(y, shape[1] * rows * columns, T{});
      return;
    }
    auto down_samples = sample_axis(y1, bin_height, rows, down, shape[2]);
    auto across_samples = sample_axis(x1, bin_width, columns, across, shape[3]);
    const auto pool = [&]<typename Operation>(Operation, T factor) {
      BinPooling<T, Operation> bins(std::move(down_samples), down, std::move(across_samples), across);
      for (int64_t c = 0; c < shape[1]; ++c) bins.run(x + c * plane, shape[3], factor, y + c * rows * columns);
    };
    maximum_ ? pool(Maximum(), 1) : pool(Sum(), 1 / static_cast<T>(per_bin));
  }

  static constexpr int64_t most_samples = int64_t{1} << 26;

  static int64_t checked_samples(int64_t rows, int64_t columns, int64_t per_bin) {
    int64_t total;
    if (__builtin_mul_overflow(rows, columns, &total) || __builtin_mul_overflow(total, per_bin, &total))
      return most_samples + 1;
    return total;
  }

  template <typename T>
  int64_t grid(T bin, int64_t region) const {
    if (sampling_ratio_ > 0) return std::min<int64_t>(sampling_ratio_, most_samples);
    const T points = std::ceil(bin);
    if (!(points < T(1 << 20)))
      fail(ErrorCode::invalid_value, "region {} has bins of {} pixels, too large to sample", region, bin);
    return std::max<int64_t>(0, static_cast<int64_t>(points));
  }

  float scale_;
  int64_t sampling_ratio_;
  bool maximum_, half_pixel_;
};

struct Range {
  int64_t begin, end;
};

// The pixels of each bin of an axis from pixel `first` to pixel `last`, cut to the image.
std::vector<Range> bin_ranges(int64_t first, int64_t last, int64_t bins, int64_t size) {
  const double bin = static_cast<double>(std::max<int64_t>(last - first + 1, 1)) / static_cast<double>(bins);
  const auto border = [&](double position) {
    return std::clamp<int64_t>(static_cast<int64_t>(position) + first, 0, size);
  };
  std::vector<Range> ranges;
  for (int64_t i = 0; i < bins; ++i) {
    ranges.push_back(
        {border(std::floor(static_cast<double>(i) * bin)), border(std::ceil(static_cast<double>(i + 1) * bin))});
  }
  return ranges;
}

// The maximum of each bin of a region whose borders are rounded to pixels: first down the columns, then along them.
template <typename T>
void max_roi_pool(const T* x, const Shape& shape, const T* roi, double scale, T* y, int64_t rows, int64_t columns) {
  auto pixel = [&](T coordinate) {
    return static_cast<int64_t>(std::clamp(std::round(static_cast<double>(coordinate) * scale), -1e9, 1e9));
  };
  const auto downs = bin_ranges(pixel(roi[2]), pixel(roi[4]), rows, shape[2]);
  const auto acrosses = bin_ranges(pixel(roi[1]), pixel(roi[3]), columns, shape[3]);
  const int64_t left = acrosses.front().begin, width = std::max<int64_t>(acrosses.back().end - left, 0);
  std::vector<T> highest(static_cast<size_t>(width));
  for (int64_t c = 0; c < shape[1]; ++c, x += shape[2] * shape[3]) {
    for (const Range& down : downs) {
      if (down.begin >= down.end) {
        y = std::fill_n(y, columns, T{});
        continue;
      }
      std::copy_n(x + down.begin * shape[3] + left, width, highest.data());
      for (int64_t h = down.begin + 1; h < down.end; ++h) {
        const T* row = x + h * shape[3] + left;
        T* best = highest.data();
        for (int64_t w = 0; w < width; ++w) best[w] = Maximum::fold(best[w], row[w]);
      }
      for (const Range& across : acrosses) {
        const T *first = highest.data() + across.begin - left, *last = highest.data() + across.end - left;
        T best = first < last ? *first : T{};
        for (; first < last; ++first) best = Maximum::fold(best, *first);
        *y++ = best;
      }
    }
  }
}

void run_max_roi_pool(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  const float scale = run.node().float_attribute("spatial_scale", 1);
  dispatch_compute(run.input(0).type(), [&]<typename T>() {
    ComputeArguments<T> arguments(run);
    const T *x = arguments.in(0), *rois = arguments.in(1);
    T* y = arguments.out(0);
    const Shape& shape = run.input(0).shape();
    const Shape& out = run.output(0).shape();
    run.threads().parallel_for(out[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t batch = checked_batch(static_cast<double>(rois[r * 5]), shape[0], r);
        max_roi_pool(x + batch * shape.elements(1, 4), shape, rois + r * 5, scale, y + r * out.elements(1, 4), out[2],
                     out[3]);
      }
    });
    arguments.finish();
  });
}

}  // namespace

void cpu_roi(CpuKernels& list) {
  list.add("RoiAlign", [](const NodeInfo& info) { return std::make_unique<RoiAlign>(info); });
  list.add_simple("MaxRoiPool", run_max_roi_pool);
}

}  // namespace tenon::ops
