#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

std::vector<float> values(int64_t count, float scale) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = scale * std::sin(static_cast<float>(i) * 1.7f);
  return x;
}

void expect_softmax(const std::vector<float>& x, const std::vector<float>& y, int64_t outer, int64_t n, int64_t inner,
                    bool logarithm) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < inner; ++c) {
      const auto at = [&](int64_t i) { return static_cast<size_t>((o * n + i) * inner + c); };
      double highest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < n; ++i) highest = std::max<double>(highest, x[at(i)]);
      for (int64_t i = 0; i < n; ++i) sum += std::exp(x[at(i)] - highest);
      for (int64_t i = 0; i < n; ++i) {
        const double log_value = x[at(i)] - highest - std::log(sum);
        const double expected = logarithm ? log_value : std::exp(log_value);
        ASSERT_NEAR(y[at(i)], expected, 2e-6 * (std::abs(expected) + (logarithm ? 1 : 1e-3)))
            << outer << " " << n << " " << inner;
      }
    }
  }
}

class Softmax : public testing::TestWithParam<Isa> {};

TEST_P(Softmax, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(softmax_isa(), GetParam());
  ThreadPool pool(2);
  for (float scale : {0.0f, 3.0f, 300.0f}) {
    for (const auto& [outer, n, inner] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                             {3, 7, 1},
                                                                             {3, 16, 1},
                                                                             {2, 31, 1},
                                                                             {2, 64, 1},
                                                                             {5, 1000, 1},
                                                                             {2, 9, 5},
                                                                             {1, 3, 700},
                                                                             {2, 196, 4},
                                                                             {1, 77, 64},
                                                                             {1, 50, 257},
                                                                             {3, 2, 19},
                                                                             {3, 1, 4},
                                                                             {0, 4, 1},
                                                                             {2, 0, 3}}) {
      const auto x = values(outer * n * inner, scale);
      auto y = x;
      softmax_middle(pool, y.data(), y.data(), outer, n, inner);
      expect_softmax(x, y, outer, n, inner, false);
      y = x;
      log_softmax_middle(pool, y.data(), y.data(), outer, n, inner);
      expect_softmax(x, y, outer, n, inner, true);
    }
  }
}

TEST_P(Softmax, MaskedAndInvalidValues) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  std::vector<float> x(19, -std::numeric_limits<float>::infinity()), y(19);
  x[3] = 2.0f;
  softmax_rows(pool, x.data(), y.data(), 1, 19);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i == 3 ? 1.0f : 0.0f);
  x[5] = NAN;
  softmax_rows(pool, x.data(), y.data(), 1, 19);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST_P(Softmax, MaskedAndInvalidColumns) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  constexpr int64_t n = 150, columns = 3;
  const auto at = [](int64_t row, int64_t column) { return static_cast<size_t>(row * columns + column); };
  std::vector<float> x(n * columns, -std::numeric_limits<float>::infinity()), y(x.size());
  x[at(149, 0)] = 2.0f;
  x[at(7, 1)] = x[at(90, 1)] = NAN;
  softmax_middle(pool, x.data(), y.data(), 1, n, columns);
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(y[at(i, 0)], i == 149 ? 1.0f : 0.0f) << i;
    EXPECT_TRUE(std::isnan(y[at(i, 1)])) << i;
    EXPECT_TRUE(std::isnan(y[at(i, 2)])) << i << ": nothing but -infinity";
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Softmax, testing::ValuesIn(available_wide_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
