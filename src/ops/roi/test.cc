#include <algorithm>
#include <cmath>

#include "op_test.h"
#include "random_floats.h"

namespace tenon {
namespace {

OpTest align(int64_t opset = ops::newest_opset) {
  OpTest test("RoiAlign", opset);
  test.attribute("sampling_ratio", 1).input<float>({1, 1, 2, 2}, {1, 2, 3, 4}).input<float>({1, 4}, {0, 0, 2, 2});
  return test;
}

TEST(RoiAlign, Modes) {
  align().input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {2.5f}).run();
  align().attribute("output_width", 2).input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 2}, {2, 3}).run();
  align(10).input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {4}).run();
  align().attribute("mode", "max").input<int64_t>({1}, {0}).expect<float>({1, 1, 1, 1}, {1}).run();
}

// One output of a region, sample by sample as the operator is defined.
float aligned_bin(const float* plane, int64_t height, int64_t width, const float* roi, int64_t row, int64_t column,
                  int64_t rows, int64_t columns, int64_t ratio, bool maximum) {
  const float x1 = roi[0] - 0.5f, y1 = roi[1] - 0.5f;
  const float bin_width = (roi[2] - 0.5f - x1) / static_cast<float>(columns),
              bin_height = (roi[3] - 0.5f - y1) / static_cast<float>(rows);
  const int64_t across = ratio ? ratio : static_cast<int64_t>(std::ceil(bin_width)),
                down = ratio ? ratio : static_cast<int64_t>(std::ceil(bin_height));
  float sum = 0, highest = -INFINITY;
  for (int64_t i = 0; i < down * across; ++i) {
    float y = y1 + static_cast<float>(row) * bin_height +
              (static_cast<float>(i / across) + 0.5f) * bin_height / static_cast<float>(down);
    float x = x1 + static_cast<float>(column) * bin_width +
              (static_cast<float>(i % across) + 0.5f) * bin_width / static_cast<float>(across);
    const bool outside = y < -1 || y > static_cast<float>(height) || x < -1 || x > static_cast<float>(width);
    y = std::clamp(y, 0.0f, static_cast<float>(height - 1));
    x = std::clamp(x, 0.0f, static_cast<float>(width - 1));
    const auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
    const float dy = y - static_cast<float>(y0), dx = x - static_cast<float>(x0);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t py = std::min(y0 + k / 2, height - 1), px = std::min(x0 + k % 2, width - 1);
      const float weight = outside ? 0 : (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx);
      sum += plane[py * width + px] * weight;
      highest = std::max(highest, plane[py * width + px] * weight);
    }
  }
  return maximum ? highest : sum / static_cast<float>(down * across);
}

void expect_aligned(int64_t width, int64_t ratio, bool maximum) {
  const int64_t height = 13, channels = 2, rows = 3, columns = 5;
  const std::vector<float> regions = {1.3f,  2.1f, 9.7f, 11.2f, 0,    0,    static_cast<float>(width),         13,
                                      -4.2f, -3,   6,    20,    3.2f, 3.1f, static_cast<float>(width) + 30.5f, 4.2f};
  const int64_t count = std::ssize(regions) / 4;
  Tensor x(ElementType::float32, Shape{1, channels, height, width}), rois(ElementType::float32, Shape{count, 4}),
      batches(ElementType::int64, Shape{count}), y(ElementType::float32, Shape{count, channels, rows, columns});
  const auto numbers = random_floats(x.elements(), 7);
  std::copy(numbers.begin(), numbers.end(), x.mutable_data<float>().begin());
  std::copy(regions.begin(), regions.end(), rois.mutable_data<float>().begin());
  std::fill_n(batches.mutable_data<int64_t>().begin(), count, 0);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t column = i % columns, row = i / columns % rows, channel = i / columns / rows % channels;
    const float* roi = regions.data() + i / columns / rows / channels * 4;
    y.mutable_data<float>()[static_cast<size_t>(i)] = aligned_bin(
        numbers.data() + channel * height * width, height, width, roi, row, column, rows, columns, ratio, maximum);
  }
  OpTest("RoiAlign")
      .attribute("output_height", rows)
      .attribute("output_width", columns)
      .attribute("sampling_ratio", ratio)
      .attribute("mode", maximum ? "max" : "avg")
      .input(x)
      .input(rois)
      .input(batches)
      .expect(y)
      .tolerance(1e-4, 1e-5)
      .run();
}

TEST(RoiAlign, MatchesSampleBySample) {
  for (int64_t width : {11, 300}) {
    for (int64_t ratio : {0, 1, 2}) {
      expect_aligned(width, ratio, false);
      expect_aligned(width, ratio, true);
    }
  }
}

TEST(RoiAlign, Errors) {
  EXPECT_EQ(align().input<int64_t>({1}, {1}).error(),
            "invalid-value in RoiAlign 'tested' (node 0): region 0 is of image 1; there are 1 images");
}

TEST(MaxRoiPool, MatchesPixelByPixel) {
  const int64_t height = 9, width = 14, rows = 3, columns = 4;
  const std::vector<float> rois = {0, 0, 0, 13, 8, 0, 2, 3, 7, 5, 0, -6, -2, 4, 20, 0, 12, 8, 30, 30, 0, 20, 1, 25, 4};
  const int64_t count = std::ssize(rois) / 5;
  const auto numbers = random_floats(height * width, 3);
  Tensor x(ElementType::float32, Shape{1, 1, height, width}), regions(ElementType::float32, Shape{count, 5}),
      y(ElementType::float32, Shape{count, 1, rows, columns});
  std::copy(numbers.begin(), numbers.end(), x.mutable_data<float>().begin());
  std::copy(rois.begin(), rois.end(), regions.mutable_data<float>().begin());
  for (int64_t i = 0; i < y.elements(); ++i) {
    const float* roi = rois.data() + i / columns / rows * 5;
    const double bin_height = (roi[4] - roi[2] + 1) / double(rows), bin_width = (roi[3] - roi[1] + 1) / double(columns);
    const double row = double(i / columns % rows), column = double(i % columns);
    float best = 0;
    bool found = false;
    for (int64_t pixel = 0; pixel < height * width; ++pixel) {
      const double h = double(pixel / width) - roi[2], w = double(pixel % width) - roi[1];
      if (h < std::floor(row * bin_height) || h >= std::ceil((row + 1) * bin_height)) continue;
      if (w < std::floor(column * bin_width) || w >= std::ceil((column + 1) * bin_width)) continue;
      best = found ? std::max(best, numbers[static_cast<size_t>(pixel)]) : numbers[static_cast<size_t>(pixel)];
      found = true;
    }
    y.mutable_data<float>()[static_cast<size_t>(i)] = best;
  }
  OpTest("MaxRoiPool").attribute("pooled_shape", {rows, columns}).input(x).input(regions).expect(y).run();
}

TEST(MaxRoiPool, Bins) {
  OpTest("MaxRoiPool")
      .attribute("pooled_shape", {1, 2})
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 5}, {0, 0, 0, 1, 1})
      .expect<float>({1, 1, 1, 2}, {3, 4})
      .run();
  OpTest("MaxRoiPool", 1)
      .attribute("pooled_shape", {1, 1})
      .attribute("spatial_scale", 0.5f)
      .input<double>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<double>({1, 5}, {0, 0, 0, 0, 0})
      .expect<double>({1, 1, 1, 1}, {1})
      .run();
}

}  // namespace
}  // namespace tenon
