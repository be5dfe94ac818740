#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv_blocked/reference.h"
#include "kernels/winograd/winograd.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

struct Case {
  int64_t batch, in_blocks, out_blocks, height, width, pad[2], pad_end[2], dilation[2] = {1, 1};
  int64_t groups = 1;

  ConvShape shape() const {
    const int64_t block = winograd_kernels().block;
    ConvShape s;
    s.batch = batch, s.in_channels = in_blocks * block, s.out_channels = out_blocks * block;
    s.input[1] = height, s.input[2] = width, s.groups = groups;
    for (int d = 0; d < 2; ++d) {
      s.kernel[d + 1] = 3, s.pad[d + 1] = pad[d], s.dilation[d + 1] = dilation[d];
      s.output[d + 1] = s.input[d + 1] + pad[d] + pad_end[d] - 2 * dilation[d];
    }
    return s;
  }
};

// Sizes around those of tiles, images smaller than one, padding on one side, more tiles than are worked on at once,
// more weights than second caches hold, dilated kernels.
const Case cases[] = {
    {1, 1, 1, 6, 6, {1, 1}, {1, 1}},
    {1, 2, 1, 7, 9, {1, 1}, {1, 1}},
    {1, 1, 3, 3, 3, {0, 0}, {0, 0}},
    {1, 1, 1, 1, 1, {1, 1}, {1, 1}},
    {3, 1, 2, 5, 4, {2, 0}, {0, 2}},
    {2, 3, 2, 13, 17, {1, 1}, {1, 1}},
    {1, 2, 2, 12, 31, {0, 1}, {1, 0}},
    {1, 17, 9, 8, 8, {1, 1}, {1, 1}},
    {1, 1, 1, 61, 70, {1, 1}, {1, 1}},
    {1, 4, 4, 40, 41, {1, 1}, {1, 1}},
    {1, 1, 1, 2, 30, {4, 4}, {4, 4}},
    {1, 13, 13, 7, 7, {1, 1}, {1, 1}},
    // Dilated: all lines as long, lines that are not, more lines than pixels, padding that is not the dilation's.
    {1, 2, 2, 16, 16, {2, 2}, {2, 2}, {2, 2}},
    {2, 3, 1, 11, 19, {4, 3}, {4, 3}, {4, 3}},
    {1, 1, 2, 5, 6, {12, 12}, {12, 12}, {12, 12}},
    {1, 2, 2, 9, 14, {0, 5}, {3, 1}, {1, 2}},
    // Groups: of one block, of several, of more outputs than inputs.
    {1, 4, 4, 12, 13, {1, 1}, {1, 1}, {1, 1}, 4},
    {2, 6, 6, 9, 30, {1, 1}, {1, 1}, {1, 1}, 2},
    {1, 3, 9, 20, 21, {1, 1}, {1, 1}, {2, 1}, 3},
};

// The largest error, as a share of what the sums are made of: the root of the number of products, as x and weights are
// random numbers of size 1.
double error_of(const ConvShape& s, const std::vector<float>& y, const std::vector<double>& expected) {
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::fabs(y[i] - expected[i]));
  return worst / std::sqrt(9 * static_cast<double>(s.in_channels / s.groups));
}

class Winograd : public testing::TestWithParam<Isa> {};

TEST_P(Winograd, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(winograd_kernels().isa, GetParam());
  ThreadPool one(1), three(3);
  for (int tile : {2, 4}) {
    const double tolerance = tile == 2 ? 2e-6 : 8e-6;
    for (const Case& c : cases) {
      const ConvShape s = c.shape();
      ASSERT_TRUE(can_use_winograd(s));
      const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
      const auto weights = random_floats(s.out_channels * s.in_channels / s.groups * 9, 2);
      const auto bias = random_floats(s.out_channels, 3);
      const auto residual = random_floats(s.batch * s.out_channels * s.output_size(), 4);
      const WinogradWeights packed(three, s, tile, weights.data());
      EXPECT_EQ(packed.bytes(), weights.size() / 9 * static_cast<size_t>((tile + 2) * (tile + 2)) * sizeof(float));
      for (const ConvEpilogue& e : {ConvEpilogue{}, ConvEpilogue{bias.data(), 0, 1.5f},
                                    ConvEpilogue{bias.data(), -1, 1.5f, residual.data(), square}}) {
        const auto expected = reference(s, /*plain=*/false, x, weights, e);
        std::vector<float> y(expected.size(), 77.0f), same(y);
        conv_winograd(one, s, x.data(), packed, y.data(), e);
        EXPECT_LE(error_of(s, y, expected), tolerance) << "case " << &c - cases << ", tile " << tile;
        conv_winograd(three, s, x.data(), packed, same.data(), e);
        EXPECT_EQ(y, same) << "case " << &c - cases << ", tile " << tile << " with three threads";
      }
    }
  }
}

// The same bits as one after the other.
TEST_P(Winograd, PoolsWhatItGives) {
  const ScopedIsa forced(GetParam());
  const int64_t block = conv_block();
  ThreadPool one(1), three(3);
  for (int tile : {2, 4}) {
    for (const Case& c : cases) {
      const ConvShape s = c.shape();
      const PoolShape windows = pool_windows(s, 2, 2, 0, block);
      EXPECT_EQ(can_pool_winograd(s, windows), s.dilation[1] == 1 && s.dilation[2] == 1);
      if (!can_pool_winograd(s, windows)) continue;
      const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
      const auto weights = random_floats(s.out_channels * s.in_channels / s.groups * 9, 2);
      const auto bias = random_floats(s.out_channels, 3);
      const WinogradWeights packed(three, s, tile, weights.data());
      for (const ConvEpilogue& e : {ConvEpilogue{}, ConvEpilogue{bias.data(), -1, 1.5f, nullptr, square}}) {
        std::vector<float> convolved(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
        conv_winograd(one, s, x.data(), packed, convolved.data(), e);
        const auto expected = pooled(one, windows, s.batch * s.out_channels / block, convolved);
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> y(expected.size(), 77.0f);
          conv_winograd_max_pool(*pool, s, windows, x.data(), packed, y.data(), e);
          EXPECT_EQ(y, expected) << "case " << &c - cases << ", tile " << tile << ", " << pool->size() << " threads";
        }
      }
    }
  }
}

TEST_P(Winograd, PoolsOnlyPairs) {
  const ConvShape s = cases[5].shape();
  for (auto [kernel, stride, pad] : {std::array{3, 2, 0}, {2, 1, 0}, {2, 2, 1}, {3, 2, 1}})
    EXPECT_FALSE(can_pool_winograd(s, pool_windows(s, kernel, stride, pad, 8)));
  PoolShape past_the_end = pool_windows(s, 2, 2, 0, 8);  // where sizes are rounded up
  ++past_the_end.output[0];
  EXPECT_FALSE(can_pool_winograd(s, past_the_end));
}

TEST_P(Winograd, OnlyKernelsOfThreeByThree) {
  ConvShape s = cases[0].shape();
  for (auto change : {+[](ConvShape& c) { c.stride[2] = 2; }, +[](ConvShape& c) { c.kernel[1] = 5; },
                      +[](ConvShape& c) { c.groups = 2; }}) {
    ConvShape other = s;
    change(other);
    EXPECT_FALSE(can_use_winograd(other));
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Winograd, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
