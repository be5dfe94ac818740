#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/channel_block.h"
#include "kernels/conv_blocked/conv_blocked.h"
#include "kernels/conv_blocked/reference.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

class ConvBlocked : public testing::TestWithParam<Isa> {};

TEST_P(ConvBlocked, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(conv_blocked_isa(), GetParam());
  EXPECT_EQ(conv_block(), channel_block(GetParam()));
  ThreadPool one(1), three(3);
  for (const BlockedCase& c : blocked_cases) {
    const ConvShape s = c.shape();
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    const auto bias = random_floats(s.out_channels, 3);
    const auto residual = random_floats(s.batch * s.out_channels * s.output_size(), 4);
    const BlockedConvWeights packed(three, s, c.plain, weights.data());
    EXPECT_EQ(packed.bytes(), weights.size() * sizeof(float));
    // Rounding adds up with the products of a sum.
    const double tolerance = 1e-5 + 3e-8 * static_cast<double>(s.in_channels / s.groups * s.kernel_size());
    for (const ConvEpilogue& e : {ConvEpilogue{}, ConvEpilogue{bias.data(), 0, 1.5f},
                                  ConvEpilogue{bias.data(), -1, 1.5f, residual.data(), square}}) {
      const auto expected = reference(s, c.plain, x, weights, e);
      std::vector<float> y(expected.size(), 77.0f), same(y);
      conv_blocked(one, s, x.data(), packed, y.data(), e);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], expected[i], tolerance) << "case " << &c - blocked_cases << " at " << i;
      conv_blocked(three, s, x.data(), packed, same.data(), e);
      EXPECT_EQ(y, same) << "case " << &c - blocked_cases << " with three threads";
    }
  }
}

// The same bits as one after the other.
TEST_P(ConvBlocked, PoolsWhatItGives) {
  const ScopedIsa forced(GetParam());
  ThreadPool one(1), three(3), five(5);
  for (const BlockedCase& c : blocked_cases) {
    const ConvShape s = c.shape();
    if (s.groups > 1 || s.dilation[1] > 1 || s.dilation[2] > 1) continue;  // not for these
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.out_channels * s.in_channels * s.kernel_size(), 2);
    const auto bias = random_floats(s.out_channels, 3);
    const BlockedConvWeights packed(five, s, c.plain, weights.data());
    for (const ConvEpilogue& e :
         {ConvEpilogue{bias.data(), 0, 1.5f}, ConvEpilogue{bias.data(), -1, 1, nullptr, square}}) {
      std::vector<float> convolved(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
      conv_blocked(one, s, x.data(), packed, convolved.data(), e);
      for (auto [kernel, stride, pad] : {std::array{3, 2, 1}, {2, 2, 0}, {3, 2, 0}, {1, 1, 0}, {4, 3, 2}, {2, 3, 1}}) {
        const PoolShape windows = pool_windows(s, kernel, stride, pad, conv_block());
        const auto expected = pooled(one, windows, s.batch * s.out_channels / conv_block(), convolved);
        for (ThreadPool* pool : {&one, &three, &five}) {
          std::vector<float> y(expected.size(), 77.0f);
          conv_blocked_max_pool(*pool, s, windows, x.data(), packed, y.data(), e);
          EXPECT_EQ(y, expected) << "case " << &c - blocked_cases << ", windows of " << kernel << ", steps of "
                                 << stride << ", " << pool->size() << " threads";
        }
      }
    }
  }
}

TEST_P(ConvBlocked, NanAndInfinityStayInTheirWindows) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  for (bool depthwise : {false, true}) {
    const ConvShape s = BlockedCase{1, 1, 1, false, depthwise, 4, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}.shape();
    auto x = random_floats(s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    x[static_cast<size_t>(index(0, 1, 3, s.input, conv_block()))] = std::nanf("");
    x[static_cast<size_t>(index(0, 1, 12, s.input, conv_block()))] = INFINITY;
    std::vector<float> y(static_cast<size_t>(s.out_channels * s.output_size()));
    const BlockedConvWeights packed(pool, s, false, weights.data());
    conv_blocked(pool, s, x.data(), packed, y.data(), {.lo = -1e30f, .hi = 1e30f});
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t w = 0; w < 20; ++w) {
        const float value = y[static_cast<size_t>(index(0, h, w, s.output, conv_block()))];
        EXPECT_EQ(std::isnan(value), h <= 2 && std::abs(w - 3) <= 1) << h << ", " << w;
        EXPECT_EQ(std::fabs(value) == 1e30f, h <= 2 && std::abs(w - 12) <= 1) << h << ", " << w;
      }
  }
}

TEST_P(ConvBlocked, BoundsThatAreNanAreNone) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  for (bool depthwise : {false, true}) {
    const ConvShape s = BlockedCase{1, 1, 1, false, depthwise, 4, 9, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}.shape();
    const auto x = random_floats(s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    const BlockedConvWeights packed(pool, s, false, weights.data());
    std::vector<float> y(static_cast<size_t>(s.out_channels * s.output_size())), expected(y);
    conv_blocked(pool, s, x.data(), packed, expected.data());
    conv_blocked(pool, s, x.data(), packed, y.data(), {.lo = std::nanf(""), .hi = std::nanf("")});
    EXPECT_EQ(y, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ConvBlocked, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
