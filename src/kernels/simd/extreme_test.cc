#include "kernels/simd/extreme.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::kernels {
namespace {

using Vector = VectorOf<float>::Type;
constexpr int lanes = sizeof(Vector) / sizeof(float);

TEST(Extreme, OfLanes) {
  for (int place = 0; place < lanes; ++place) {
    Vector v = Vector{} + 2.0f;
    v[place] = 3.0f;
    EXPECT_EQ(extreme_of_lanes<true>(v), 3.0f) << place;
    EXPECT_EQ(extreme_of_lanes<false>(v), 2.0f) << place;
    v[place] = -INFINITY;
    EXPECT_EQ(extreme_of_lanes<true>(v), 2.0f) << place;
    EXPECT_EQ(extreme_of_lanes<false>(v), -INFINITY) << place;
    v[place] = NAN;
    EXPECT_TRUE(std::isnan(extreme_of_lanes<true>(v))) << place;
    EXPECT_TRUE(std::isnan(extreme_of_lanes<false>(v))) << place;
  }
}

TEST(Extreme, NanWins) {
  const Vector number = Vector{} + 2.0f, nan = Vector{} + NAN;
  EXPECT_TRUE(std::isnan(extreme_of<true, float>(number, nan)[0]));
  EXPECT_TRUE(std::isnan(extreme_of<true, float>(nan, number)[0]));
  EXPECT_TRUE(std::isnan(extreme_of<false, float>(nan, number)[lanes - 1]));
  EXPECT_TRUE(std::isnan(bounded_by<true>(number, nan)[0]));
}

}  // namespace
}  // namespace tenon::kernels
