#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "op_test.h"

namespace tenon {
namespace {

TEST(ConvInteger, ZeroPointsAndPadding) {
  OpTest("ConvInteger")
      .attribute("pads", {1, 0})
      .input<uint8_t>({1, 1, 2}, {3, 4})
      .constant<uint8_t>({1, 1, 2}, {1, 2})
      .input<uint8_t>({}, {1})
      .expect<int32_t>({1, 1, 2}, {4, 8})
      .run();
  OpTest("ConvInteger")
      .input<int8_t>({1, 1, 2}, {3, 4})
      .input<int8_t>({2, 1, 2}, {1, 2, 3, 4})
      .no_input()
      .input<int8_t>({2}, {1, 2})
      .expect<int32_t>({1, 2, 1}, {4, 11})
      .run();
}

TEST(ConvInteger, Groups) {
  // One output for each group, and two.
  OpTest("ConvInteger")
      .attribute("group", 2)
      .input<uint8_t>({1, 2, 1, 2}, {1, 2, 3, 4})
      .constant<int8_t>({2, 1, 1, 1}, {2, -1})
      .expect<int32_t>({1, 2, 1, 2}, {2, 4, -3, -4})
      .run();
  OpTest("ConvInteger")
      .attribute("group", 2)
      .input<uint8_t>({1, 2, 1, 2}, {1, 2, 3, 4})
      .constant<int8_t>({4, 1, 1, 1}, {2, -1, 1, 0})
      .input<uint8_t>({}, {1})
      .constant<int8_t>({4}, {0, 1, 0, 2})
      .expect<int32_t>({1, 4, 1, 2}, {0, 2, 0, -2, 2, 3, -4, -6})
      .run();
}

TEST(QLinearConv, PerChannel) {
  OpTest("QLinearConv")
      .input<uint8_t>({1, 1, 2}, {10, 20})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {10})
      .constant<int8_t>({2, 1, 1}, {2, -3})
      .input<float>({2}, {1, 2})
      .constant<int8_t>({2}, {0, 0})
      .input<float>({}, {2})
      .input<uint8_t>({}, {100})
      .input<int32_t>({2}, {4, 0})
      .expect<uint8_t>({1, 2, 2}, {101, 106, 100, 85})
      .run();
}

// Channels with images of their own, larger than vectors, with padding, strides, and biases that floats hold or not.
template <typename X>
void check_depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t stride, int32_t bias, X zero) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  std::vector<X> x(static_cast<size_t>(channels * size * size)), y;
  std::vector<int8_t> w(static_cast<size_t>(channels * kernel * kernel));
  std::vector<int32_t> biases(static_cast<size_t>(channels));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<X>(i * 37 + i / 11);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i * 29 + 3);
  for (size_t i = 0; i < biases.size(); ++i) biases[i] = bias - static_cast<int32_t>(i);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t o = 0; o < out * out; ++o) {
      int32_t sum = biases[static_cast<size_t>(c)];
      for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
        const int64_t h = o / out * stride - pad + tap / kernel, v = o % out * stride - pad + tap % kernel;
        if (h < 0 || h >= size || v < 0 || v >= size) continue;
        sum += (x[static_cast<size_t>((c * size + h) * size + v)] - zero) *
               w[static_cast<size_t>(c * kernel * kernel + tap)];
      }
      const float code = std::nearbyint(static_cast<float>(sum) * 0.0078125f) + 5;
      y.push_back(
          static_cast<X>(std::clamp<float>(code, std::numeric_limits<X>::min(), std::numeric_limits<X>::max())));
    }
  }
  const auto number = [](auto value) { return Tensor(Shape{}, {value}); };
  OpTest("QLinearConv")
      .attribute("group", channels)
      .attribute("pads", {pad, pad, pad, pad})
      .attribute("strides", {stride, stride})
      .input(Tensor(Shape{1, channels, size, size}, std::span<const X>(x)))
      .input(number(0.015625f))
      .input(number(zero))
      .constant(Tensor(Shape{channels, 1, kernel, kernel}, std::span<const int8_t>(w)))
      .input(number(0.5f))
      .constant(number(int8_t{0}))
      .input(number(1.0f))
      .input(number(X{5}))
      .input(Tensor(Shape{channels}, std::span<const int32_t>(biases)))
      .expect(Tensor(Shape{1, channels, out, out}, std::span<const X>(y)))
      .run();
}

TEST(QLinearConv, Depthwise) {
  for (int32_t bias : {100, 20'000'000}) {
    check_depthwise<uint8_t>(3, 19, 3, 1, bias, 131);
    check_depthwise<int8_t>(3, 19, 3, 2, bias, -7);
    check_depthwise<uint8_t>(2, 21, 5, 3, bias, 0);
  }
  check_depthwise<int8_t>(1, 9, 3, 1, 50, 4);
}

}  // namespace
}  // namespace tenon
