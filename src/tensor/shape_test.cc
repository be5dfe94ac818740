#include "tenon/shape.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string error_of(const Shape& shape) {
  try {
    shape.elements();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Shape, ElementsAreLimited) {
  EXPECT_EQ(Shape({2, 3}).elements(), 6);
  EXPECT_EQ(Shape({2, 0}).elements(), 0);
  EXPECT_EQ(error_of({int64_t{1} << 62, 4}),
            "overflow: shape [4611686018427387904, 4] has more elements than fit in 64 bits");
  EXPECT_EQ(error_of({-1}), "overflow: shape [-1] has a negative size");
  EXPECT_EQ(error_of({int64_t{1} << 50, 0}),
            "overflow: the sizes of the empty shape [1125899906842624, 0] are too large");
  EXPECT_EQ(error_of(Shape(65, 1)), "unsupported: a tensor of 65 axes is not supported; at most 64 are");
}

}  // namespace
}  // namespace tenon
