#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {
namespace {

constexpr std::string_view align_functions = R"cuda(
// The two neighbours of a coordinate on one axis, with weights that are 0 outside of the image.
struct Sample {
  i64 low, high;
  A low_weight, high_weight;
};
inline Sample sample_at(A x, i64 size) {
  if (!(x >= -1 && x <= (A)size)) return {0, 0, (A)0, (A)0};
  x = x > 0 ? x : (A)0;
  const i64 low = least((i64)x, size - 1), high = least(low + 1, size - 1);
  const A part = low == size - 1 ? (A)0 : x - (A)low;
  return {low, high, 1 - part, part};
}
// How many samples a bin has along an axis; below 0: too many to count.
inline i64 samples_of(A bin) {
  if (SAMPLES > 0) return SAMPLES;
  const A points = ceil(bin);
  return !(points < (A)(1 << 20)) ? -1 : points > 0 ? (i64)points : 0;
}
inline A larger(A a, A b) { return a < b ? b : a; }
)cuda";

// A region of an image that is none, or that is too large to sample, is not a number.
constexpr std::string_view align_text = R"cuda(
    const i64 column = i % v[0], row = i / v[0] % v[1], c = i / v[0] / v[1] % v[2], region = i / v[0] / v[1] / v[2];
    const i64 image = batches[region], height = v[3], width = v[4];
    const T* roi = rois + region * 4;
    const A scale = (A)SPATIAL_SCALE, shift = HALF_PIXEL ? (A)0.5 : (A)0;
    const A x1 = widen(roi[0]) * scale - shift, y1 = widen(roi[1]) * scale - shift;
    A across = widen(roi[2]) * scale - shift - x1, down = widen(roi[3]) * scale - shift - y1;
    if (!HALF_PIXEL) {
      across = larger(across, (A)1);
      down = larger(down, (A)1);
    }
    const A bin_height = down / (A)v[1], bin_width = across / (A)v[0];
    const i64 columns = samples_of(bin_width), rows = samples_of(bin_height);
    if (image < 0 || image >= v[5] || columns < 0 || rows < 0 || (A)columns * (A)rows > (A)(1 << 26)) {
      y[i] = narrow<T>((A)NOT_A_NUMBER);
      continue;
    }
    const T* plane = x + (image * v[2] + c) * height * width;
    A result = 0;
    bool is_first = true;
    for (i64 r = 0; r < rows && height * width > 0; ++r) {
      const Sample s = sample_at(y1 + (A)row * bin_height + ((A)r + (A)0.5) * bin_height / (A)rows, height);
      for (i64 k = 0; k < columns; ++k) {
        const Sample t = sample_at(x1 + (A)column * bin_width + ((A)k + (A)0.5) * bin_width / (A)columns, width);
        const A a = widen(plane[s.low * width + t.low]) * s.low_weight * t.low_weight;
        const A b = widen(plane[s.low * width + t.high]) * s.low_weight * t.high_weight;
        const A d = widen(plane[s.high * width + t.low]) * s.high_weight * t.low_weight;
        const A e = widen(plane[s.high * width + t.high]) * s.high_weight * t.high_weight;
        if (MAXIMUM) {
          const A best = larger(larger(a, d), larger(b, e));
          result = is_first ? best : larger(result, best);
        } else {
          result += (a + d) + (b + e);
        }
        is_first = false;
      }
    }
    y[i] = narrow<T>(MAXIMUM || rows * columns == 0 ? result : result / (A)(rows * columns));
)cuda";

class RoiAlign final : public Kernel {
 public:
  explicit RoiAlign(const NodeInfo& info) {
    const std::string mode = info.node().string_attribute("mode", "avg"),
                      transform = info.node().string_attribute("coordinate_transformation_mode", "half_pixel");
    if (mode != "avg" && mode != "max") fail(ErrorCode::invalid_attribute, "mode is '{}'; it may be avg or max", mode);
    if (transform != "half_pixel" && transform != "output_half_pixel") {
      fail(ErrorCode::invalid_attribute,
           "coordinate_transformation_mode is '{}'; it may be half_pixel or output_half_pixel", transform);
    }
    const int64_t samples = info.node().int_attribute("sampling_ratio", 0);
    if (samples < 0) fail(ErrorCode::invalid_attribute, "sampling_ratio is {}; it must not be negative", samples);
    constants_ =
        fmt::format("#define MAXIMUM {}\n#define HALF_PIXEL {}\n#define SAMPLES {}LL\n#define SPATIAL_SCALE {}\n",
                    mode == "max" ? 1 : 0, transform == "half_pixel" ? 1 : 0, samples,
                    cuda::number_text(info.node().float_attribute("spatial_scale", 1), ElementType::float64));
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& loop = run.per_plan<CudaLoop>([&] {
      return CudaLoop(run, y.elements(), "const T* x, const T* rois, const i64* batches, T* y", align_text,
                      {y.dim(3), y.dim(2), x.dim(1), x.dim(2), x.dim(3), x.dim(0)},
                      types_text(x.type()) + constants_ + std::string(align_functions));
    });
    loop.run(run, {x.raw(), run.input(1).raw(), run.input(2).raw(), y.raw()});
  }

 private:
  std::string constants_;
};

// The maximum of each bin of a region whose borders are rounded to pixels.
constexpr std::string_view pool_functions = R"cuda(
struct Range {
  i64 begin, end;
};
inline i64 pixel(double x) {
  x = round(x * SPATIAL_SCALE);
  return (i64)(x < -1e9 ? -1e9 : x > 1e9 ? 1e9 : x);
}
inline i64 border(double position, i64 first, i64 size) { return least(most((i64)position + first, (i64)0), size); }
// The pixels of bin i of an axis, cut to the image.
inline Range pixels_of(i64 first, i64 last, i64 i, i64 bins, i64 size) {
  const double bin = (double)most(last - first + 1, (i64)1) / (double)bins;
  return {border(floor((double)i * bin), first, size), border(ceil((double)(i + 1) * bin), first, size)};
}
)cuda";

constexpr std::string_view pool_text = R"cuda(
    const i64 column = i % v[0], row = i / v[0] % v[1], c = i / v[0] / v[1] % v[2], region = i / v[0] / v[1] / v[2];
    const T* roi = rois + region * 5;
    const A image = widen(roi[0]);
    if (!(image >= 0 && image < (A)v[5])) {
      y[i] = narrow<T>((A)NOT_A_NUMBER);
      continue;
    }
    const T* plane = x + ((i64)image * v[2] + c) * v[3] * v[4];
    const Range down = pixels_of(pixel(widen(roi[2])), pixel(widen(roi[4])), row, v[1], v[3]);
    const Range across = pixels_of(pixel(widen(roi[1])), pixel(widen(roi[3])), column, v[0], v[4]);
    A best = 0;
    bool is_first = true;
    for (i64 h = down.begin; h < down.end; ++h) {
      for (i64 w = across.begin; w < across.end; ++w) {
        const A value = widen(plane[h * v[4] + w]);
        if (is_first || best < value) best = value;
        is_first = false;
      }
    }
    y[i] = narrow<T>(best);
)cuda";

void run_max_roi_pool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const std::string scale =
        fmt::format("#define SPATIAL_SCALE {}\n",
                    cuda::number_text(run.node().float_attribute("spatial_scale", 1), ElementType::float64));
    return CudaLoop(run, y.elements(), "const T* x, const T* rois, T* y", pool_text,
                    {y.dim(3), y.dim(2), x.dim(1), x.dim(2), x.dim(3), x.dim(0)},
                    types_text(x.type()) + scale + std::string(pool_functions));
  });
  loop.run(run, {x.raw(), run.input(1).raw(), y.raw()});
}

}  // namespace

void cuda_roi(CudaKernels& list) {
  list.add("RoiAlign", [](const NodeInfo& info) { return std::make_unique<RoiAlign>(info); },
           {.types = types::floats | TypeSet{ElementType::int64}});
  list.add_simple("MaxRoiPool", run_max_roi_pool, {.types = types::floats});
}

}  // namespace tenon::ops
