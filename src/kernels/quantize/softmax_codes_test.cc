#include "kernels/quantize/softmax_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/cpu_features.h"

namespace tenon::kernels {
namespace {

template <class T>
void check(int64_t n, float scale, float y_scale, T zero) {
  std::vector<T> x(static_cast<size_t>(n)), y(x.size() + 1, T(77));
  std::vector<float> numbers(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 151 + i * i * 5);
  SoftmaxOfCodes(scale).row(x.data(), n, y_scale, zero, y.data(), numbers.data());
  const int highest = n == 0 ? 0 : *std::max_element(x.begin(), x.end());
  const auto power = [&](T code) { return std::exp(double{scale} * (code - highest)); };
  double sum = 0;
  for (T code : x) sum += power(code);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = power(x[i]) / sum / static_cast<double>(y_scale) + zero;
    const double limited = std::clamp<double>(exact, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    EXPECT_NEAR(y[i], limited, 0.501) << n << " at " << i;
  }
  EXPECT_EQ(y.back(), T(77));
}

class SoftmaxCodes : public testing::TestWithParam<Isa> {};

TEST_P(SoftmaxCodes, MatchesReference) {
  const ScopedIsa forced(GetParam());
  for (int64_t n : {0, 1, 3, 15, 16, 17, 33, 197}) {
    for (float scale : {0.001f, 0.05f, 3.0f}) {
      check<uint8_t>(n, scale, 1.0f / 256, 0);
      check<int8_t>(n, scale, 1.0f / 500, -100);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SoftmaxCodes, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
