#include <gtest/gtest.h>

#include "pass_test.h"
#include "random_floats.h"

namespace tenon {
namespace {

struct Case {
  std::vector<int64_t> kernel{1, 1}, strides{1, 1};  // of the convolution
  int64_t outputs = 8;
  std::vector<int64_t> pool_strides{2, 2}, pool_pads{0, 0, 0, 0};
  int64_t counts_padding = 0, rounds_up = 0, groups = 1;
};

ModelBuilder conv_and_average(const Case& c) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 6, 9, 8});
  const Shape shape{c.outputs, 6 / c.groups, c.kernel[0], c.kernel[1]};
  b.initializer("w", Tensor(shape, std::span<const float>(random_floats(shape.elements(), 1))));
  b.initializer("bias", Tensor(Shape{c.outputs}, std::span<const float>(random_floats(c.outputs, 2))));
  ir::Node& conv = b.node("Conv", {"x", "w", "bias"}, {"convolved"});
  conv.set_attribute({"strides", c.strides});
  conv.set_attribute({"group", c.groups});
  ir::Node& pool = b.node("AveragePool", {"convolved"}, {"y"});
  pool.set_attribute({"kernel_shape", std::vector<int64_t>{3, 2}});
  pool.set_attribute({"strides", c.pool_strides});
  pool.set_attribute({"pads", c.pool_pads});
  pool.set_attribute({"count_include_pad", c.counts_padding});
  pool.set_attribute({"ceil_mode", c.rounds_up});
  b.output("y");
  return b;
}

// Whether the average comes first then; also checks that the results are the same.
bool averages_first(const Case& c) {
  ModelBuilder b = conv_and_average(c);
  const std::string text = optimized(b, {"average-first"});
  if (!last_rewrites().empty()) {
    EXPECT_LT(change_by_extended(conv_and_average(c)), 1e-5);
  }
  return text.find("AveragePool(") < text.find("Conv(");
}

TEST(AverageFirst, TakesAveragesOfSinglePixels) {
  EXPECT_TRUE(averages_first({}));
  EXPECT_TRUE(averages_first({.pool_strides = {1, 2}}));
  EXPECT_TRUE(averages_first({.outputs = 12, .groups = 3}));
  EXPECT_TRUE(averages_first({.pool_pads = {1, 1, 1, 0}, .rounds_up = 1})) << "padding does not count";
  EXPECT_TRUE(averages_first({.counts_padding = 1, .rounds_up = 1})) << "there is none";
}

TEST(AverageFirst, LeavesOthers) {
  EXPECT_FALSE(averages_first({.kernel = {1, 3}}));
  EXPECT_FALSE(averages_first({.strides = {2, 1}}));
  EXPECT_FALSE(averages_first({.pool_strides = {1, 1}})) << "as many pixels";
  EXPECT_FALSE(averages_first({.pool_pads = {1, 1, 1, 0}, .counts_padding = 1})) << "the bias is averaged with zeros";
  EXPECT_FALSE(averages_first({.outputs = 6, .groups = 6})) << "too few outputs of a group";
  ModelBuilder b = conv_and_average({});
  b.output("convolved");
  EXPECT_EQ(optimized(b, {"average-first"}).find("AveragePool(x"), std::string::npos);
}

TEST(AverageFirst, TakesTheMeanOfAnImage) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, 3, 5, 5});
  b.initializer("w", Tensor(Shape{4, 3, 1, 1}, std::span<const float>(random_floats(12, 1))));
  b.node("Conv", {"x", "w"}, {"convolved"});
  b.node("GlobalAveragePool", {"convolved"}, {"y"});
  b.output("y");
  const std::string text = optimized(b, {"average-first"});
  EXPECT_LT(text.find("GlobalAveragePool(x)"), text.find("Conv("));
}

}  // namespace
}  // namespace tenon
