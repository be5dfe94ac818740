#include "tenon/scalar.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

TEST(Float16, RoundsToNearestEven) {
  struct Case {
    float value;
    uint16_t bits;
  } cases[] = {{0.0f, 0x0000},
               {-0.0f, 0x8000},
               {1.0f, 0x3c00},
               {-2.0f, 0xc000},
               {65504.0f, 0x7bff},
               {65520.0f, 0x7c00},
               {INFINITY, 0x7c00},
               {5.9604645e-8f, 0x0001},
               {2.9802322e-8f, 0x0000},
               {1.0f + 0x1p-11f, 0x3c00},
               {1.0f + 3 * 0x1p-11f, 0x3c02}};
  for (const Case& c : cases) EXPECT_EQ(float16(c.value).bits, c.bits) << c.value;
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(NAN))));
}

TEST(Float16, EveryCodeSurvives) {
  for (int code = 0; code < 65536; ++code) {
    float value = static_cast<float>(float16::from_bits(static_cast<uint16_t>(code)));
    if (!std::isnan(value)) {
      ASSERT_EQ(float16(value).bits, code);
    }
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_EQ(bfloat16(3.4e38f).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(NAN))));
}

template <typename T>
class SmallFloats : public ::testing::Test {};
using SmallFloatTypes = ::testing::Types<float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, float8e8m0,
                                         float6e2m3, float6e3m2, float4e2m1>;
TYPED_TEST_SUITE(SmallFloats, SmallFloatTypes);

TYPED_TEST(SmallFloats, EveryCodeSurvives) {
  const SmallFloatFormat& format = TypeParam::format;
  int codes = 1 << (format.exponent_bits + format.mantissa_bits + (format.has_sign ? 1 : 0));
  for (int code = 0; code < codes; ++code) {
    TypeParam small;
    small.bits = static_cast<uint8_t>(code);
    float value = static_cast<float>(small);
    if (std::isnan(value)) continue;
    EXPECT_EQ(TypeParam(value, /*saturate=*/false).bits, code) << value;
  }
}

TEST(SmallFloats, LargestAndBeyond) {
  EXPECT_EQ(static_cast<float>(float8e4m3fn(1e6f)), 448);
  EXPECT_TRUE(std::isnan(static_cast<float>(float8e4m3fn(1e6f, false))));
  EXPECT_EQ(static_cast<float>(float8e5m2(1e6f)), 57344);
  EXPECT_TRUE(std::isinf(static_cast<float>(float8e5m2(1e6f, false))));
  EXPECT_EQ(static_cast<float>(float8e4m3fnuz(1e6f)), 240);
  EXPECT_EQ(float8e4m3fnuz(-0.0f).bits, 0);
  EXPECT_EQ(static_cast<float>(float6e2m3(100.0f)), 7.5f);
  EXPECT_EQ(static_cast<float>(float6e3m2(100.0f)), 28);
  EXPECT_EQ(static_cast<float>(float4e2m1(100.0f)), 6);
  EXPECT_EQ(static_cast<float>(float4e2m1(-2.5f)), -2);
}

}  // namespace
}  // namespace tenon
