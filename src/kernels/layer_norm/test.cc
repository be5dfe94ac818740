#include "kernels/layer_norm/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

std::vector<float> values(int64_t count, float offset) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = offset + std::sin(static_cast<float>(i) * 1.3f);
  return x;
}

class LayerNorm : public testing::TestWithParam<Isa> {};

TEST_P(LayerNorm, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(layer_norm_isa(), GetParam());
  ThreadPool pool(2);
  for (int64_t n : {1, 3, 4, 17, 64, 768, 1023}) {
    for (bool rms : {false, true}) {
      for (bool affine : {false, true}) {
        const int64_t rows = 11;
        const auto x = values(rows * n, 0.7f), scale = values(n, 1.0f), bias = values(n, -0.2f);
        std::vector<float> y(x.size()), means(11), inverses(11);
        NormRows call{x.data(), y.data(), rows, n};
        if (affine) call.scale = scale.data(), call.bias = bias.data();
        call.mean = means.data(), call.inverse_deviation = inverses.data();
        (rms ? rms_norm : layer_norm)(pool, call);
        for (int64_t r = 0; r < rows; ++r) {
          double mean = 0, squares = 0;
          for (int64_t i = 0; i < n && !rms; ++i) mean += x[static_cast<size_t>(r * n + i)] / static_cast<double>(n);
          for (int64_t i = 0; i < n; ++i) squares += std::pow(x[static_cast<size_t>(r * n + i)] - mean, 2);
          const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + call.epsilon);
          for (int64_t i = 0; i < n; ++i) {
            double expected = (x[static_cast<size_t>(r * n + i)] - mean) * inverse;
            if (affine) expected = expected * scale[static_cast<size_t>(i)] + bias[static_cast<size_t>(i)];
            ASSERT_NEAR(y[static_cast<size_t>(r * n + i)], expected, 1e-5 + (n == 1 ? 1e-3 : 0)) << n << " " << rms;
          }
          EXPECT_NEAR(inverses[static_cast<size_t>(r)], inverse, 1e-5 * inverse);
          EXPECT_NEAR(means[static_cast<size_t>(r)], mean, 1e-6);
        }
      }
    }
  }
}

// Rows that are normalised one after the other, in place, and each alone.
TEST_P(LayerNorm, RowsAloneHaveTheSameBits) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(2);
  for (const auto normalize : {layer_norm, rms_norm}) {
    for (int64_t n : {5, 32, 100, 768}) {
      const int64_t rows = 7;
      const auto x = values(rows * n, 0.7f), scale = values(n, 1.0f), bias = values(n, -0.2f);
      std::vector<float> together = x, alone(x.size());
      normalize(pool, {together.data(), together.data(), rows, n, scale.data(), bias.data()});
      for (int64_t i = 0; i < rows; ++i)
        normalize(pool, {x.data() + i * n, alone.data() + i * n, 1, n, scale.data(), bias.data()});
      EXPECT_EQ(together, alone) << n;
    }
  }
}

// The mean of the squares less the square of the mean would leave nothing of such rows' variance.
TEST_P(LayerNorm, RowsFarFromZero) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(1);
  const int64_t n = 768;
  std::vector<float> near = values(n, 0.0f), far = values(n, 4000.0f), expected(near.size()), y(near.size());
  for (size_t i = 0; i < near.size(); ++i) near[i] = far[i] - 4000.0f;
  layer_norm(pool, {near.data(), expected.data(), 1, n});
  layer_norm(pool, {far.data(), y.data(), 1, n});
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 2e-3) << i;
  const std::vector<float> equal(near.size(), 0.1f);
  layer_norm(pool, {equal.data(), y.data(), 1, n});
  for (float v : y) ASSERT_NEAR(v, 0.0f, 1e-4);
}

TEST_P(LayerNorm, AddsRowsFirst) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(2);
  for (int64_t n : {1, 3, 4, 17, 64, 1023}) {
    for (bool rms : {false, true}) {
      for (bool two : {false, true}) {
        const int64_t rows = 6;
        const auto x = values(rows * n, 0.7f), skip = values(3 * n, -0.3f), bias = values(n, 0.1f);
        const auto norm = rms ? rms_norm : layer_norm;
        std::vector<float> added(x.size()), expected(x.size()), sum(x.size()), y(x.size());
        for (size_t i = 0; i < x.size(); ++i)
          added[i] = x[i] + skip[i % skip.size()] + (two ? bias[i % bias.size()] : 0.0f);
        norm(pool, {added.data(), expected.data(), rows, n});
        NormRows call{x.data(), y.data(), rows, n};
        call.addends[0] = {skip.data(), 3};
        if (two) call.addends[1] = {bias.data(), 1};
        norm(pool, call);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5 + (n == 1 ? 1e-3 : 0)) << n;
        std::vector<float> in_place = x;
        call.x = call.y = in_place.data(), call.sum = sum.data();
        norm(pool, call);
        EXPECT_EQ(in_place, y);
        EXPECT_EQ(sum, added);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, LayerNorm, testing::ValuesIn(available_wide_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
