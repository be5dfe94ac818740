#include "kernels/half/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

class Half : public testing::TestWithParam<Isa> {};

// The value of a half, from its definition.
double value_of(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST_P(Half, EveryCodeComesBack) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(half_kernels().isa, GetParam());
  std::vector<uint16_t> codes(65536), back(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(codes.size());
  f16_to_f32(codes.data(), floats.data(), 65536);
  f32_to_f16(floats.data(), back.data(), 65536);
  for (size_t i = 0; i < codes.size(); ++i) {
    const double expected = value_of(codes[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(floats[i]) && std::isnan(value_of(back[i]))) << i;
    } else {
      ASSERT_EQ(floats[i], expected) << i;
      ASSERT_EQ(back[i], codes[i]);
    }
  }
}

TEST_P(Half, RoundsToNearestEven) {
  const ScopedIsa forced(GetParam());
  std::vector<float> x;
  std::vector<uint16_t> expected;
  for (uint16_t code = 0; code < 0x7bff; ++code) {
    const double low = value_of(code), high = value_of(static_cast<uint16_t>(code + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    const auto even = static_cast<uint16_t>(code + (code & 1));
    x.insert(x.end(), {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f), -middle});
    expected.insert(expected.end(),
                    {code, even, static_cast<uint16_t>(code + 1), static_cast<uint16_t>(even | 0x8000)});
  }
  x.insert(x.end(), {65519.996f, 65520.0f, -1e30f, 1e-30f, -0.0f});
  expected.insert(expected.end(), {0x7bff, 0x7c00, 0xfc00, 0, 0x8000});
  std::vector<uint16_t> y(x.size());
  f32_to_f16(x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], expected[i]) << x[i];
}

TEST_P(Half, EveryLength) {
  const ScopedIsa forced(GetParam());
  for (int64_t n = 0; n < 40; ++n) {
    const auto size = static_cast<size_t>(n) + 1;
    std::vector<float> x(size, 1.5f), z(size, 7.0f);
    std::vector<uint16_t> y(size, 9);
    f32_to_f16(x.data(), y.data(), n);
    f16_to_f32(y.data(), z.data(), n);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) ASSERT_EQ(z[i], 1.5f);
    EXPECT_EQ(y.back(), 9);
    EXPECT_EQ(z.back(), 7.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Half, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
