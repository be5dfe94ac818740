#include "kernels/channel_affine/channel_affine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

class ChannelAffine : public testing::TestWithParam<Isa> {};

TEST_P(ChannelAffine, MatchesTheFormula) {
  const ScopedIsa scope(GetParam());
  ASSERT_EQ(affine_kernels().isa, GetParam());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> scale, shift;
  for (int i = 0; i < affine_period; ++i) {
    scale.push_back(static_cast<float>(i * 7 % 16 - 8) / 4);
    shift.push_back(static_cast<float>(i * 5 % 16 - 7) / 8);
  }
  for (int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 100}) {
    for (auto [lo, hi] : {std::pair(-infinity, infinity), std::pair(0.0f, infinity), std::pair(-1.0f, 1.5f)}) {
      std::vector<float> x(static_cast<size_t>(n) + 1, 42.0f);
      for (int64_t i = 0; i < n; ++i)
        x[static_cast<size_t>(i)] = i % 11 == 5 ? NAN : static_cast<float>(i * 13 % 31 - 15) / 4;
      std::vector<float> y(x.size(), 42.0f);
      f32_affine(x.data(), scale.data(), shift.data(), lo, hi, y.data(), n);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        // These numbers are exact, whether a product is rounded before it is added or not.
        const float v = x[i] * scale[i % affine_period] + shift[i % affine_period];
        const float expected = v < lo ? lo : v > hi ? hi : v;
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(y[i])) << i;
        else
          EXPECT_EQ(y[i], expected) << i << " of " << n;
      }
      EXPECT_EQ(y.back(), 42.0f) << "wrote past the end";
      f32_affine(x.data(), scale.data(), shift.data(), lo, hi, x.data(), n);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])));
    }
  }
}

TEST_P(ChannelAffine, PlanesOfSeveralImages) {
  const ScopedIsa scope(GetParam());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr int64_t channels = 3, planes = 7;
  std::vector<float> scale, shift;
  for (int i = 0; i < channels * affine_period; ++i) {
    scale.push_back(static_cast<float>(i * 7 % 16 - 8) / 4);
    shift.push_back(static_cast<float>(i * 5 % 16 - 7) / 8);
  }
  for (int64_t size : {1, 5, 16, 35, 64}) {
    for (auto [lo, hi] : {std::pair(-infinity, infinity), std::pair(-1.0f, 1.5f)}) {
      std::vector<float> x(static_cast<size_t>(planes * size)), y(x.size(), 42.0f), expected(x.size(), 42.0f);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 13 % 31) / 4 - 3;
      const AffinePlanes all{x.data(), scale.data(), shift.data(), lo, hi, y.data(), size, channels};
      f32_affine_planes(all, 2, planes - 1);
      for (int64_t plane = 2; plane < planes - 1; ++plane) {
        const int64_t own = plane % channels * affine_period, first = plane * size;
        f32_affine(x.data() + first, scale.data() + own, shift.data() + own, lo, hi, expected.data() + first, size);
      }
      EXPECT_EQ(y, expected) << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ChannelAffine, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
