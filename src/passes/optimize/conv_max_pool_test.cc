#include <gtest/gtest.h>

#include "base/channel_block.h"
#include "pass_test.h"
#include "random_floats.h"

namespace tenon {
namespace {

const int64_t block = channel_block(best_isa());

struct Pool {
  int64_t kernel = 3, stride = 2, pad = 1, dilation = 1;
};

// An image of `in` channels, a convolution with a kernel of so many pixels, a pool, and another convolution.
ModelBuilder conv_and_pool(int64_t in, int64_t kernel, const Pool& pool) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, in, 112, 112});
  const Shape shape{4 * block, in, kernel, kernel};
  b.initializer("w", Tensor(shape, std::span<const float>(random_floats(shape.elements(), 1))));
  b.node("Conv", {"x", "w"}, {"convolved"}).set_attribute({"pads", std::vector<int64_t>(4, kernel / 2)});
  b.node("Relu", {"convolved"}, {"positive"});
  ir::Node& max = b.node("MaxPool", {"positive"}, {"pooled"});
  max.set_attribute({"kernel_shape", std::vector<int64_t>(2, pool.kernel)});
  max.set_attribute({"strides", std::vector<int64_t>(2, pool.stride)});
  max.set_attribute({"pads", std::vector<int64_t>(4, pool.pad)});
  max.set_attribute({"dilations", std::vector<int64_t>(2, pool.dilation)});
  const Shape next{4 * block, 4 * block, 3, 3};
  b.initializer("next", Tensor(next, std::span<const float>(random_floats(next.elements(), 1))));
  b.node("Conv", {"pooled", "next"}, {"y"});
  b.output("y");
  return b;
}

std::string after_passes(ModelBuilder& b) {
  return optimized(b, {"conv-epilogue", "blocked-layout", "winograd", "conv-max-pool"});
}
bool is_fused(ModelBuilder& b) { return after_passes(b).find("BlockedConvMaxPool(") != std::string::npos; }
bool is_fused(int64_t in, int64_t kernel, const Pool& pool) {
  ModelBuilder b = conv_and_pool(in, kernel, pool);
  return is_fused(b);
}

TEST(ConvMaxPool, TakesThePoolAfterAConvolutionOfFewProducts) {
  for (const Pool& pool : {Pool{3, 2, 1}, Pool{2, 2, 0}, Pool{3, 2, 0}})
    EXPECT_TRUE(is_fused(3, 7, pool)) << "windows of " << pool.kernel << ", steps of " << pool.stride;
  EXPECT_FALSE(is_fused(64, 5, {2, 2, 0})) << "weights fill the first cache";
  EXPECT_FALSE(is_fused(3, 7, {3, 1, 1})) << "windows have most of their pixels in common";
  EXPECT_FALSE(is_fused(3, 7, {5, 2, 1}));
  EXPECT_FALSE(is_fused(3, 7, {2, 2, 0, 2}));
}

TEST(ConvMaxPool, TakesPairsAfterWinograd) {
  const auto with_other_weights = [](const Pool& pool) {
    ModelBuilder b = conv_and_pool(4 * block, 3, pool);
    b.input("other", ElementType::float32, SymbolicShape{1 << 20});
    b.initializer("weights", Tensor(Shape{1 << 20}, std::span<const float>(random_floats(1 << 20, 2))));
    b.node("Add", {"other", "weights"}, {"sum"});
    b.output("sum");
    return is_fused(b);
  };
  EXPECT_TRUE(with_other_weights({2, 2, 0}));
  EXPECT_FALSE(with_other_weights({3, 2, 1}));
}

TEST(ConvMaxPool, KeepsWhatOthersRead) {
  ModelBuilder b = conv_and_pool(3, 7, {2, 2, 0});
  b.output("positive");
  EXPECT_FALSE(is_fused(b));
}

}  // namespace
}  // namespace tenon
