#include "tenon/tools/compare_values.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::tools {
namespace {

Tensor floats(std::initializer_list<float> values) { return Tensor({static_cast<int64_t>(values.size())}, values); }

TEST(LargestDifference, IsAShareOfTheLargestValue) {
  const NamedValues expected = {{"a", floats({1, -8, NAN, INFINITY})}, {"n", Tensor({1}, {int64_t{5}})}};
  EXPECT_EQ(largest_difference(expected, expected), 0);
  EXPECT_EQ(largest_difference({{"a", floats({3, -7, NAN, INFINITY})}, {"n", Tensor({1}, {int64_t{6}})}}, expected),
            0.25);
  EXPECT_EQ(largest_difference({{"a", floats({1, -8, 0, INFINITY})}}, expected), INFINITY);
  EXPECT_EQ(largest_difference({{"a", floats({1, -8, NAN, -INFINITY})}}, expected), INFINITY);
  EXPECT_EQ(largest_difference({{"a", floats({1, -8, NAN})}}, expected), INFINITY);
  EXPECT_EQ(largest_difference({{"a", floats({0.5f})}}, {{"a", floats({0})}}), 0.5) << "where all are zero, itself";
}

}  // namespace
}  // namespace tenon::tools
