#include "kernels/quantize/requantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

template <class X>
std::vector<X> sums(size_t count) {
  std::vector<X> result(count);
  uint32_t seed = 11;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    result[i] = static_cast<X>(static_cast<int32_t>(seed) >> (i % 3 == 0 ? 8 : 20));
  }
  return result;
}

template <class Y>
Y expected(double x, int32_t addend, float scale, Y zero) {
  using Limits = std::numeric_limits<Y>;
  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(x)) + static_cast<uint32_t>(addend));
  const float scaled = static_cast<float>(sum) * scale;
  if (std::isnan(scaled)) return Limits::min();
  const double code = std::nearbyint(static_cast<double>(scaled)) + zero;
  return static_cast<Y>(std::min<double>(std::max<double>(code, Limits::min()), Limits::max()));
}

class Requantize : public testing::TestWithParam<Isa> {
 protected:
  template <class X, class Y>
  void check(int32_t addend, std::vector<float> scales, Y zero) {
    ASSERT_EQ(requantize_kernels().isa, GetParam());
    for (size_t n : {0, 1, 3, 15, 16, 17, 63, 64, 100, 1001}) {
      const std::vector<X> x = sums<X>(n);
      std::vector<float> by_element(n);
      for (size_t i = 0; i < n; ++i) by_element[i] = scales[i % scales.size()];
      std::vector<Y> y(n + 1, Y(77));
      const bool one = scales.size() == 1;
      requantize(x.data(), addend, {one ? scales.data() : by_element.data(), one ? 0 : 1}, zero, y.data(),
                 static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(int{y[i]}, int{expected(x[i], addend, by_element[i], zero)})
            << x[i] << " + " << addend << ", times " << by_element[i] << ", plus " << int{zero};
      }
      EXPECT_EQ(y[n], Y(77));
    }
  }
};

TEST_P(Requantize, RoundsToEvenAndSaturates) {
  const ScopedIsa forced(GetParam());
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (int32_t addend : {0, 5, -123456, std::numeric_limits<int32_t>::max()}) {
    for (const std::vector<float>& scales :
         {std::vector<float>{0.5f}, {0.01f}, {nan}, {infinity}, {0.5f, 0.02f, nan, 1e-6f, 3e8f}}) {
      check<int32_t, uint8_t>(addend, scales, 128);
      check<int32_t, int8_t>(addend, scales, -3);
      check<float, uint8_t>(addend, scales, 0);
      check<float, int8_t>(addend, scales, 127);
    }
  }
}

// As codes that are made first and added to then.
TEST_P(Requantize, RowsWithCodesAdded) {
  const ScopedIsa forced(GetParam());
  const int64_t rows = 3, ld = 80, ldy = 90;
  const std::vector<int32_t> x = sums<int32_t>(static_cast<size_t>(rows * ld));
  std::vector<float> scales(ld), addends(ld);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = 0.001f * static_cast<float>(i % 7 + 1);
    addends[i] = 3.7f * static_cast<float>(i) - 100.25f;
  }
  for (int64_t n : {1, 16, 32, 33, 64, 80}) {
    std::vector<int8_t> once(static_cast<size_t>(rows * ldy), 77), twice = once, expected_codes = once;
    requantize_rows({x.data(), ld, rows, n}, {scales.data(), 1}, int8_t{9}, once.data(), ldy);
    requantize_and_add_rows({x.data(), ld, rows, n}, {scales.data(), 1}, {addends.data(), 0.6f, 9}, int8_t{-20},
                            twice.data(), ldy);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(row * ldy + i);
        const float sum = static_cast<float>(once[at] - 9) * 0.6f + addends[static_cast<size_t>(i)];
        expected_codes[at] = static_cast<int8_t>(std::clamp(std::nearbyint(sum) - 20, -128.0f, 127.0f));
      }
    }
    EXPECT_EQ(twice, expected_codes) << n;
  }
}

// Rows as single arrays, one after the other.
TEST_P(Requantize, Rows) {
  const ScopedIsa forced(GetParam());
  const int64_t rows = 3, ld = 80, ldy = 90;
  const std::vector<int32_t> x = sums<int32_t>(static_cast<size_t>(rows * ld));
  std::vector<float> scales(ld), bias(ld);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = 0.001f * static_cast<float>(i % 7 + 1);
    bias[i] = static_cast<float>(i) - 20.5f;
  }
  for (int64_t n : {1, 8, 16, 33, 64, 80}) {
    for (int64_t step : {0, 1}) {
      const Scales own{scales.data(), step};
      std::vector<uint8_t> codes(static_cast<size_t>(rows * ldy), 77), expected_codes = codes;
      std::vector<float> floats(codes.size(), 77), expected_floats = floats;
      requantize_rows({x.data(), ld, rows, n}, own, uint8_t{9}, codes.data(), ldy);
      scale_rows({x.data(), ld, rows, n}, own, step == 0 ? nullptr : bias.data(), floats.data(), ldy);
      for (int64_t row = 0; row < rows; ++row) {
        requantize(x.data() + row * ld, 0, own, uint8_t{9}, expected_codes.data() + row * ldy, n);
        for (int64_t i = 0; i < n; ++i) {
          const float scaled = static_cast<float>(x[static_cast<size_t>(row * ld + i)]) * own.at[i * step];
          expected_floats[static_cast<size_t>(row * ldy + i)] = scaled + (step == 0 ? 0 : bias[static_cast<size_t>(i)]);
        }
      }
      EXPECT_EQ(codes, expected_codes) << n;
      EXPECT_EQ(floats, expected_floats) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Requantize, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
