#include "kernels/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

std::vector<float> numbers(size_t count) {
  const float special[] = {0.0f, -0.0f, 0.5f, 1.5f, 2.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f};
  std::vector<float> result(count);
  uint32_t seed = 7;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    result[i] = seed % 5 == 0 ? special[seed / 5 % std::size(special)]
                              : static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-22f;
  }
  return result;
}

template <class T>
void expect_quantized(float scale, float zero) {
  using Limits = std::numeric_limits<T>;
  for (size_t n : {0, 1, 3, 15, 16, 17, 64, 100, 1001}) {
    const std::vector<float> x = numbers(n);
    std::vector<T> y(n + 1, T(77));
    quantize(x.data(), y.data(), static_cast<int64_t>(n), scale, zero);
    for (size_t i = 0; i < n; ++i) {
      const double value = std::nearbyint(x[i] / scale) + zero;
      const double expected = !(value > Limits::min()) ? Limits::min() : value > Limits::max() ? Limits::max() : value;
      EXPECT_EQ(static_cast<double>(y[i]), expected) << x[i] << " / " << scale << " + " << zero;
    }
    EXPECT_EQ(y[n], T(77));
  }
}

TEST(Quantize, RoundsToEvenAndSaturates) {
  for (float scale : {1.0f, 0.02f, 3.0f}) {
    expect_quantized<uint8_t>(scale, 128);
    expect_quantized<uint8_t>(scale, 0);
    expect_quantized<int8_t>(scale, -128);
    expect_quantized<int8_t>(scale, 5);
    expect_quantized<uint16_t>(scale, 65535);
    expect_quantized<int16_t>(scale, -7);
  }
}

TEST(Quantize, RangeHasZeroAndLeavesNaNOut) {
  EXPECT_EQ(range_with_zero(nullptr, 0), std::pair(0.0f, 0.0f));
  for (size_t n : {1, 5, 16, 33, 100}) {
    std::vector<float> x(n, NAN);
    EXPECT_EQ(range_with_zero(x.data(), static_cast<int64_t>(n)), std::pair(0.0f, 0.0f));
    x[n / 2] = 3;
    x[n - 1] = n > 2 ? -2.0f : 3.0f;
    EXPECT_EQ(range_with_zero(x.data(), static_cast<int64_t>(n)), std::pair(n > 2 ? -2.0f : 0.0f, 3.0f));
  }
}

}  // namespace
}  // namespace tenon::kernels
