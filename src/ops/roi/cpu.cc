#include <algorithm>
#include <cmath>
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

// Four neighbours of a sampling point with their weights; all weights are 0 outside the image.
template <typename T>
struct Sample {
  int64_t at[4];
  T weight[4];
};

template <typename T>
Sample<T> sample_at(T y, T x, int64_t height, int64_t width) {
  Sample<T> s{};
  if (!(y >= -1 && y <= static_cast<T>(height) && x >= -1 && x <= static_cast<T>(width))) return s;
  y = std::max(y, T(0));
  x = std::max(x, T(0));
  const int64_t y0 = std::min(static_cast<int64_t>(y), height - 1), x0 = std::min(static_cast<int64_t>(x), width - 1);
  const int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
  const T dy = y0 == height - 1 ? 0 : y - static_cast<T>(y0), dx = x0 == width - 1 ? 0 : x - static_cast<T>(x0);
  const int64_t at[] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  const T weights[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
  std::copy_n(at, 4, s.at);
  std::copy_n(weights, 4, s.weight);
  return s;
}

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
    std::vector<Sample<T>> samples;
    samples.reserve(static_cast<size_t>(rows * columns * per_bin));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        for (int64_t i = 0; i < down; ++i) {
          for (int64_t j = 0; j < across; ++j) {
            const T sy = y1 + static_cast<T>(row) * bin_height +
                         (static_cast<T>(i) + T(0.5)) * bin_height / static_cast<T>(down);
            const T sx = x1 + static_cast<T>(column) * bin_width +
                         (static_cast<T>(j) + T(0.5)) * bin_width / static_cast<T>(across);
            samples.push_back(sample_at(sy, sx, shape[2], shape[3]));
          }
        }
      }
    }
    const int64_t plane = shape[2] * shape[3];
    for (int64_t c = 0; c < shape[1]; ++c) {
      const Sample<T>* next = samples.data();
      for (int64_t bin = 0; bin < rows * columns; ++bin, next += per_bin)
        *y++ = pool(x + c * plane, plane, next, per_bin);
    }
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

  template <typename T>
  T pool(const T* x, int64_t size, const Sample<T>* samples, int64_t count) const {
    if (count == 0 || size == 0) return 0;
    T result = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Sample<T>& s = samples[i];
      T parts[4];
      for (int k = 0; k < 4; ++k) parts[k] = x[s.at[k]] * s.weight[k];
      if (maximum_) {
        const T value = std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
        result = i == 0 ? value : std::max(result, value);
      } else {
        result += parts[0] + parts[1] + parts[2] + parts[3];
      }
    }
    return maximum_ ? result : result / static_cast<T>(count);
  }

  float scale_;
  int64_t sampling_ratio_;
  bool maximum_, half_pixel_;
};

// The maximum of each bin of a region whose borders are rounded to pixels.
template <typename T>
void max_roi_pool(const T* x, const Shape& shape, const T* roi, double scale, T* y, int64_t rows, int64_t columns) {
  auto pixel = [&](T coordinate) {
    return static_cast<int64_t>(std::clamp(std::round(static_cast<double>(coordinate) * scale), -1e9, 1e9));
  };
  const int64_t x1 = pixel(roi[1]), y1 = pixel(roi[2]);
  const double height = static_cast<double>(std::max<int64_t>(pixel(roi[4]) - y1 + 1, 1)) / static_cast<double>(rows);
  const double width = static_cast<double>(std::max<int64_t>(pixel(roi[3]) - x1 + 1, 1)) / static_cast<double>(columns);
  auto border = [](double position, int64_t first, int64_t size) {
    return std::clamp<int64_t>(static_cast<int64_t>(position) + first, 0, size);
  };
  for (int64_t c = 0; c < shape[1]; ++c, x += shape[2] * shape[3]) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t top = border(std::floor(static_cast<double>(row) * height), y1, shape[2]);
      const int64_t bottom = border(std::ceil(static_cast<double>(row + 1) * height), y1, shape[2]);
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t left = border(std::floor(static_cast<double>(column) * width), x1, shape[3]);
        const int64_t right = border(std::ceil(static_cast<double>(column + 1) * width), x1, shape[3]);
        T best = top < bottom && left < right ? x[top * shape[3] + left] : T{};
        for (int64_t h = top; h < bottom; ++h) {
          for (int64_t w = left; w < right; ++w) best = std::max(best, x[h * shape[3] + w]);
        }
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
