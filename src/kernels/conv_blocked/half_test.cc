#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/channel_block.h"
#include "kernels/conv_blocked/conv_blocked.h"
#include "kernels/conv_blocked/reference.h"
#include "kernels/half/half.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

// Numbers of half precision, and the same as floats.
struct Halves {
  std::vector<uint16_t> halves;
  std::vector<float> floats;
  Halves(int64_t count, unsigned seed) : halves(static_cast<size_t>(count)), floats(random_floats(count, seed)) {
    f32_to_f16(floats.data(), halves.data(), count);
    f16_to_f32(halves.data(), floats.data(), count);
  }
};

std::vector<float> as_floats(const std::vector<uint16_t>& halves) {
  std::vector<float> result(halves.size());
  f16_to_f32(halves.data(), result.data(), static_cast<int64_t>(halves.size()));
  return result;
}

void square_halves(const uint16_t* x, uint16_t* y, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  f16_to_f32(x, values.data(), n);
  square(values.data(), values.data(), n);
  f32_to_f16(values.data(), y, n);
}

// The units of the last place of half precision at 1.
constexpr double unit = 0x1p-10;

class HalfConvBlocked : public testing::Test {
 protected:
  void SetUp() override {
    if (half_conv_block() == 0) GTEST_SKIP() << "this processor has no arithmetic of half precision";
  }
};

TEST_F(HalfConvBlocked, MatchesReference) {
  const int64_t block = half_conv_block();
  EXPECT_EQ(block, half_channel_block());
  ThreadPool one(1), three(3);
  for (const BlockedCase& c : blocked_cases) {
    const ConvShape s = c.shape(block);
    const Halves x(s.batch * s.in_channels * s.input_size(), 1);
    const Halves weights(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    const Halves bias(s.out_channels, 3), residual(s.batch * s.out_channels * s.output_size(), 4);
    const HalfBlockedConvWeights packed(three, s, c.plain, weights.halves.data());
    EXPECT_EQ(packed.bytes(), weights.halves.size() * sizeof(uint16_t));
    // What is rounded is as large as the sums are. These are random, and so are their errors.
    const auto products = static_cast<double>(s.in_channels / s.groups * s.kernel_size());
    const HalfConvEpilogue epilogues[] = {
        {}, {bias.halves.data(), 0, 1.5f}, {bias.halves.data(), -1, 1.5f, residual.halves.data(), square_halves}};
    for (const HalfConvEpilogue& e : epilogues) {
      const ConvEpilogue in_floats{e.bias ? bias.floats.data() : nullptr, e.lo, e.hi,
                                   e.residual ? residual.floats.data() : nullptr, e.activation ? square : nullptr};
      const auto expected = reference(s, c.plain, x.floats, weights.floats, in_floats, block);
      std::vector<uint16_t> y(expected.size(), 77), same(y);
      conv_blocked(one, s, x.halves.data(), packed, y.data(), e);
      const std::vector<float> values = as_floats(y);
      const double slope = e.activation ? 2 * e.hi : 1, tolerance = slope * unit * (2 + 3 * std::sqrt(products));
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(values[i], expected[i], tolerance + 3 * unit * std::fabs(expected[i]))
            << "case " << &c - blocked_cases << " at " << i;
      conv_blocked(three, s, x.halves.data(), packed, same.data(), e);
      EXPECT_EQ(y, same) << "case " << &c - blocked_cases << " with three threads";
    }
  }
}

// Were all products of a sum added up in half precision, the error would grow with the root of their number: to eight
// times as much for the last one.
TEST_F(HalfConvBlocked, LongSumsAreAsGoodAsThoseOfFewProducts) {
  const int64_t block = half_conv_block();
  ThreadPool pool(1);
  for (const int64_t in : {8, 64, 256}) {
    const ConvShape s = BlockedCase{1, in, 1, false, false, 4, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}.shape(block);
    const Halves x(s.in_channels * s.input_size(), 1), weights(s.out_channels * s.in_channels * s.kernel_size(), 2);
    const HalfBlockedConvWeights packed(pool, s, false, weights.halves.data());
    const auto expected = reference(s, false, x.floats, weights.floats, {}, block);
    std::vector<uint16_t> y(expected.size());
    conv_blocked(pool, s, x.halves.data(), packed, y.data());
    const std::vector<float> values = as_floats(y);
    double errors = 0, squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      errors += (values[i] - expected[i]) * (values[i] - expected[i]);
      squares += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(errors / squares), 1.75 * unit) << in << " blocks of channels";
  }
}

TEST_F(HalfConvBlocked, NanAndInfinityStayInTheirWindows) {
  const int64_t block = half_conv_block();
  ThreadPool pool(1);
  for (bool depthwise : {false, true}) {
    const ConvShape s =
        BlockedCase{1, 1, 1, false, depthwise, 4, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}.shape(block);
    Halves x(s.in_channels * s.input_size(), 1);
    const Halves weights(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    x.halves[static_cast<size_t>(index(0, 1, 3, s.input, block))] = 0x7e00;
    x.halves[static_cast<size_t>(index(0, 1, 12, s.input, block))] = 0x7c00;
    std::vector<uint16_t> y(static_cast<size_t>(s.out_channels * s.output_size()));
    const HalfBlockedConvWeights packed(pool, s, false, weights.halves.data());
    conv_blocked(pool, s, x.halves.data(), packed, y.data(), {.lo = -1000, .hi = 1000});
    const std::vector<float> values = as_floats(y);
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t w = 0; w < 20; ++w) {
        const float value = values[static_cast<size_t>(index(0, h, w, s.output, block))];
        EXPECT_EQ(std::isnan(value), h <= 2 && std::abs(w - 3) <= 1) << h << ", " << w;
        EXPECT_EQ(std::fabs(value) == 1000, h <= 2 && std::abs(w - 12) <= 1) << h << ", " << w;
      }
  }
}

TEST(HalfConvBlockedDispatch, IsThereWithItsArithmeticOnly) {
  EXPECT_EQ(half_conv_block() > 0, best_isa() == Isa::neon && cpu_features().fp16);
  const ScopedIsa forced(Isa::portable);
  EXPECT_EQ(half_conv_block(), 0);
}

}  // namespace
}  // namespace tenon::kernels
