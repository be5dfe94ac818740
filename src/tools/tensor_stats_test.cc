#include "tenon/tools/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::tools {
namespace {

constexpr float inf = INFINITY;

TEST(TensorStats, AreThoseOfTheFiniteElements) {
  const TensorStats stats = tensor_stats(Tensor({7}, {1.0f, -3.0f, 0.0f, NAN, inf, -inf, 6.0f}));
  EXPECT_EQ(stats.elements, 7);
  EXPECT_EQ(stats.finite_numbers, 4);
  EXPECT_EQ(stats.nans, 1);
  EXPECT_EQ(stats.infinities, 2);
  EXPECT_EQ(stats.zeros, 1);
  EXPECT_EQ(stats.min, -3);
  EXPECT_EQ(stats.max, 6);
  EXPECT_EQ(stats.mean, 1);
  EXPECT_DOUBLE_EQ(stats.std, std::sqrt((0.0 + 16 + 1 + 25) / 4));
  EXPECT_FALSE(stats.finite());
  EXPECT_EQ(to_text(stats), "min -3, max 6, mean 1, std 3.24037, 1 zero, 1 NaN, 2 infinite");
}

TEST(TensorStats, OfEveryKindOfNumber) {
  EXPECT_EQ(tensor_stats(Tensor({3}, {int64_t{-2}, int64_t{4}, int64_t{1}})).mean, 1);
  EXPECT_EQ(tensor_stats(Tensor({2}, {uint16_t{7}, uint16_t{65535}})).max, 65535);
  EXPECT_EQ(tensor_stats(Tensor({2}, {std::complex<float>(3, 4), std::complex<float>(0, 0)})).max, 5);
  EXPECT_EQ(tensor_stats(Tensor({2}, {std::complex<double>(NAN, 4), std::complex<double>(inf, 0)})).nans, 1);
  EXPECT_EQ(tensor_stats(Tensor({2}, {std::string("a"), std::string("b")})).elements, 2);
  EXPECT_EQ(to_text(tensor_stats(Tensor({1}, {std::string("a")}))), "");
  EXPECT_EQ(to_text(tensor_stats(Tensor(ElementType::float32, Shape{0}))), "");
}

template <typename T>
NotFinite counted(float number) {
  return count_not_finite(Tensor(Shape{2}, {T(1.0f), T(number)}));
}

TEST(TensorStats, FindNanAndInfinityInNarrowTypes) {
  EXPECT_EQ(counted<float16>(1e6f).infinities, 1);
  EXPECT_EQ(counted<float16>(NAN).nans, 1);
  EXPECT_EQ(counted<bfloat16>(inf).infinities, 1);
  EXPECT_EQ(counted<bfloat16>(NAN).nans, 1);
  EXPECT_EQ(counted<float8e4m3fn>(NAN).nans, 1);
  EXPECT_EQ(counted<float8e5m2>(NAN).nans, 1);
  EXPECT_EQ(counted<float8e5m2fnuz>(NAN).nans, 1);
  const Tensor infinite(Shape{1}, {float8e5m2(inf, false)});
  EXPECT_EQ(count_not_finite(infinite).infinities, 1);
  EXPECT_EQ(count_not_finite(Tensor({1}, {int64_t{1}})).nans, 0);
}

}  // namespace
}  // namespace tenon::tools
