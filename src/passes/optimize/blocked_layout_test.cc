#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/channel_block.h"
#include "pass_test.h"

namespace tenon {
namespace {

const int64_t block = channel_block(best_isa());

Tensor weights(const Shape& shape) {
  Tensor result(ElementType::float32, shape);
  int64_t i = 0;
  for (float& value : result.mutable_data<float>()) value = static_cast<float>(i++ * 7 % 23 - 11) / 64;
  return result;
}

Tensor as_type(const Tensor& floats, ElementType type) {
  Tensor result(type, floats.shape());
  const auto fill = [&]<class T>(std::span<T> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = T(floats.data<float>()[i]);
  };
  if (type == ElementType::float16)
    fill(result.mutable_data<float16>());
  else
    fill(result.mutable_data<bfloat16>());
  return result;
}

void add_conv(ModelBuilder& b, const std::string& from, const std::string& to, int64_t in, int64_t out, int64_t groups,
              int64_t kernel) {
  b.initializer("w_" + to, weights({out, in / groups, kernel, kernel}));
  ir::Node& conv = b.node("Conv", {from, "w_" + to}, {to});
  conv.set_attribute({"group", groups});
  conv.set_attribute({"pads", std::vector<int64_t>(4, kernel / 2)});
}

// A small residual network of 3 -> 4 blocks of channels.
ModelBuilder network() {
  ModelBuilder b;
  const int64_t c = 4 * block;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 3, 56, 56});
  add_conv(b, "x", "stem", 3, c, 1, 3);
  b.node("Relu", {"stem"}, {"relu"});
  ir::Node& pool = b.node("MaxPool", {"relu"}, {"pooled"});
  pool.set_attribute({"kernel_shape", std::vector<int64_t>{3, 3}});
  pool.set_attribute({"strides", std::vector<int64_t>{2, 2}});
  pool.set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
  add_conv(b, "pooled", "deep", c, c, c, 3);
  b.initializer("scale", weights({c, 1, 1}));
  b.node("Mul", {"deep", "scale"}, {"scaled"});
  add_conv(b, "scaled", "wide", c, c, 1, 3);
  b.node("Add", {"wide", "pooled"}, {"sum"});
  b.node("Concat", {"sum", "scaled"}, {"both"}).set_attribute({"axis", int64_t{1}});
  b.node("GlobalAveragePool", {"both"}, {"mean"});
  b.node("Flatten", {"mean"}, {"y"});
  b.output("y");
  return b;
}

// The operators, in order.
std::vector<std::string> operators_of(const std::string& text) {
  std::vector<std::string> result;
  for (size_t at = text.find(" = "); at != std::string::npos; at = text.find(" = ", at + 1)) {
    const size_t end = text.find('(', at);
    if (end < text.find('\n', at)) result.push_back(text.substr(at + 3, end - at - 3));
  }
  return result;
}

using List = std::vector<std::string>;

// The most that an output changes from level extended to level all, relative to its largest value.
double change_by_all(const ModelBuilder& b, const Tensor& x) {
  std::vector<Tensor> results;
  for (OptimizationLevel level : {OptimizationLevel::extended, OptimizationLevel::all}) {
    SessionOptions options;
    options.level = level;
    results.push_back(b.session(options).run({{"x", x}}).at("y").tensor());
  }
  double largest = 0, change = 0;
  for (size_t i = 0; i < results[0].data<float>().size(); ++i) {
    largest = std::max<double>(largest, std::abs(results[0].data<float>()[i]));
    change = std::max<double>(change, std::abs(results[0].data<float>()[i] - results[1].data<float>()[i]));
  }
  return change / largest;
}

TEST(BlockedLayout, WholeNetworkBetweenFirstLayerAndHead) {
  ModelBuilder b = network();
  EXPECT_LT(change_by_all(b, weights({2, 3, 56, 56})), 1e-5);
  EXPECT_EQ(operators_of(optimized(b, {"blocked-layout"})),
            (List{"tenon.BlockedConv", "Relu", "MaxPool", "tenon.BlockedConv", "Mul", "tenon.BlockedConv", "Add",
                  "Concat", "ReduceMean", "tenon.FromBlocked", "Flatten"}));
}

TEST(BlockedLayout, SplitResizeAndGate) {
  ModelBuilder b;
  const int64_t c = 4 * block;
  b.input("x", ElementType::float32, SymbolicShape{1, c, 40, 40});
  add_conv(b, "x", "first", c, c, 1, 3);
  b.node("Split", {"first"}, {"left", "right"}).set_attribute({"axis", int64_t{1}});
  b.graph().nodes().back().set_attribute({"num_outputs", int64_t{2}});
  b.initializer("scales", Tensor({4}, {1.0f, 1.0f, 2.0f, 2.0f}));
  add_conv(b, "left", "second", c / 2, c / 2, 1, 3);
  b.node("Resize", {"second", "", "scales"}, {"large"}).set_attribute({"coordinate_transformation_mode", "asymmetric"});
  b.node("GlobalAveragePool", {"right"}, {"mean"});
  b.node("Sigmoid", {"mean"}, {"gate"});
  b.node("Mul", {"large", "gate"}, {"gated"});
  add_conv(b, "gated", "last", c / 2, c, 1, 3);
  b.node("Relu", {"last"}, {"positive"});
  b.node("GlobalAveragePool", {"positive"}, {"y"});
  b.output("y");
  EXPECT_LT(change_by_all(b, weights({1, c, 40, 40})), 1e-5);
  EXPECT_EQ(operators_of(optimized(b, {"blocked-layout"})),
            (List{"tenon.ToBlocked", "tenon.BlockedConv", "Split", "tenon.BlockedConv", "Resize", "ReduceMean",
                  "Sigmoid", "Mul", "tenon.BlockedConv", "Relu", "ReduceMean", "tenon.FromBlocked"}));
}

// Channels that do not fill blocks, and a transposed convolution.
TEST(BlockedLayout, PartsOfBlocks) {
  ModelBuilder b;
  const int64_t c = 6 * block + block / 2, d = 4 * block + 1;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 3, 40, 40});
  add_conv(b, "x", "first", 3, c, 1, 3);
  b.node("HardSwish", {"first"}, {"active"});
  add_conv(b, "active", "deep", c, c, c, 3);
  b.initializer("scale", weights({c, 1, 1})).initializer("divisor", Tensor({1, 1, 1}, {3.0f}));
  b.node("Mul", {"deep", "scale"}, {"scaled"});
  b.node("Div", {"scaled", "divisor"}, {"divided"});
  b.node("GlobalAveragePool", {"divided"}, {"mean"});
  b.node("Sigmoid", {"mean"}, {"gate"});
  b.node("Mul", {"divided", "gate"}, {"gated"});
  b.initializer("w_up", weights({c, d, 2, 2}));
  b.node("ConvTranspose", {"gated", "w_up"}, {"up"}).set_attribute({"strides", std::vector<int64_t>{2, 2}});
  for (const char* name : {"s", "b", "m", "v"}) {
    Tensor numbers = weights({d});
    for (float& number : numbers.mutable_data<float>()) number = std::abs(number) + 0.5f;
    b.initializer(name, numbers);
  }
  b.node("MaxPool", {"up"}, {"pooled"}).set_attribute({"kernel_shape", std::vector<int64_t>{2, 2}});
  b.node("BatchNormalization", {"pooled", "s", "b", "m", "v"}, {"normal"});
  b.node("Relu", {"normal"}, {"positive"});
  add_conv(b, "positive", "last", d, c, 1, 3);
  b.node("Tanh", {"last"}, {"y"});
  b.output("y");
  EXPECT_LT(change_by_all(b, weights({2, 3, 40, 40})), 1e-4);
  EXPECT_EQ(operators_of(optimized(b, {"batch-norm-activation", "blocked-layout"})),
            (List{"tenon.BlockedConv", "HardSwish", "tenon.BlockedConv", "Mul", "Div", "ReduceMean", "Sigmoid", "Mul",
                  "tenon.BlockedConvTranspose", "MaxPool", "tenon.ChannelAffine", "tenon.BlockedConv",
                  "tenon.FromBlocked", "Tanh"}));
}

TEST(BlockedLayout, MeansOfChannels) {
  const auto operators = [](std::vector<int64_t> axes, int64_t keepdims) {
    ModelBuilder b;
    const int64_t c = 4 * block;
    b.input("x", ElementType::float32, SymbolicShape{1, 3, 56, 56});
    add_conv(b, "x", "image", 3, c, 1, 3);
    const auto count = static_cast<int64_t>(axes.size());
    b.initializer("axes", Tensor(Shape{count}, std::span<const int64_t>(axes)));
    b.node("ReduceMean", {"image", "axes"}, {"mean"}).set_attribute({"keepdims", keepdims});
    b.node("Sigmoid", {"mean"}, {"gate"});
    b.node("Mul", {"image", "gate"}, {"gated"});
    add_conv(b, "gated", "y", c, c, 1, 3);
    b.output("y");
    EXPECT_LT(change_by_all(b, weights({1, 3, 56, 56})), 1e-4);
    return operators_of(optimized(b, {"blocked-layout"}));
  };
  const List blocked{"tenon.BlockedConv", "ReduceMean", "Sigmoid", "Mul", "tenon.BlockedConv", "tenon.FromBlocked"};
  EXPECT_EQ(operators({2, 3}, 1), blocked);
  EXPECT_EQ(operators({-1, -2}, 1), blocked);
  EXPECT_NE(operators({1, 2}, 1), blocked);
}

TEST(BlockedLayout, LeavesWhatDoesNotPay) {
  const auto unchanged = [](int64_t in, int64_t out, int64_t groups, int64_t size) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{1, in, size, size});
    add_conv(b, "x", "y", in, out, groups, 1);
    b.output("y");
    optimized(b, {"blocked-layout"});
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(block, block, 1, 56)) << "two conversions cost more than so little work";
  EXPECT_TRUE(unchanged(64 * block, block / 2 - 1, 1, 56)) << "the channels fill less than half a block";
  EXPECT_TRUE(unchanged(9 * block / 2, 9 * block / 2, 3, 56)) << "three groups do not fill blocks";
  EXPECT_FALSE(unchanged(64 * block, 64 * block, 1, 56));
}

TEST(BlockedLayout, Groups) {
  const auto operators = [](int64_t channels, int64_t groups, int64_t size) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{1, channels, size, size});
    add_conv(b, "x", "a", channels, channels, 1, 1);
    add_conv(b, "a", "c", channels, channels, groups, 3);
    add_conv(b, "c", "y", channels, channels, 1, 1);
    b.output("y");
    EXPECT_LT(change_by_all(b, weights({1, channels, size, size})), 1e-4);
    return operators_of(optimized(b, {"blocked-layout"}));
  };
  const List blocked{"tenon.ToBlocked", "tenon.BlockedConv", "tenon.BlockedConv", "tenon.BlockedConv",
                     "tenon.FromBlocked"};
  EXPECT_EQ(operators(8 * block, 8, 14), blocked) << "a block each";
  EXPECT_EQ(operators(8 * block, 4, 14), blocked);
  EXPECT_EQ(operators(8 * block, 16, 7), blocked) << "two are a block";
  EXPECT_EQ(operators(8 * block, 4 * block, 56), (List{"Conv", "Conv", "Conv"})) << "of weights that mostly are zeros";
}

TEST(BlockedLayout, HalfPrecisionIsWidenedWhereThatPays) {
  const auto operators = [](ElementType type, int64_t kernel) {
    ModelBuilder b;
    const int64_t c = 64;
    b.input("x", type, SymbolicShape{1, c, 56, 56});
    b.initializer("w", as_type(weights({c, c, kernel, kernel}), type));
    b.initializer("bias", as_type(weights({c}), type));
    b.node("Conv", {"x", "w", "bias"}, {"y"}).set_attribute({"pads", std::vector<int64_t>(4, kernel / 2)});
    b.output("y");
    return operators_of(optimized(b, {"blocked-layout", "fold-constants"}));
  };
  const List widened{"Cast", "tenon.ToBlocked", "tenon.BlockedConv", "tenon.FromBlocked", "Cast"};
  EXPECT_EQ(operators(ElementType::bfloat16, 3), widened);
  EXPECT_EQ(operators(ElementType::bfloat16, 1), List{"Conv"});
  // Where there is arithmetic of half precision, convolutions are computed in it.
  const List blocked{"tenon.ToBlocked", "tenon.BlockedConv", "tenon.FromBlocked"};
  for (int64_t kernel : {1, 3})
    EXPECT_EQ(operators(ElementType::float16, kernel) == blocked, half_channel_block() > 0) << kernel;
  const ScopedIsa forced(Isa::portable);
  EXPECT_EQ(operators(ElementType::float16, 3), widened);
  EXPECT_EQ(operators(ElementType::float16, 1), List{"Conv"});
}

// A part of a network whose numbers are of half precision.
TEST(BlockedLayout, HalfPrecisionHasBlocksOfItsOwn) {
  if (half_channel_block() == 0) GTEST_SKIP() << "this processor has no arithmetic of half precision";
  ModelBuilder b;
  const ElementType half = ElementType::float16;
  const int64_t c = 5 * half_channel_block() / 2;
  const auto conv = [&](const std::string& from, const std::string& to, int64_t in, int64_t out, int64_t groups,
                        int64_t kernel) {
    b.initializer("w_" + to, as_type(weights({out, in / groups, kernel, kernel}), half));
    ir::Node& node = b.node("Conv", {from, "w_" + to}, {to});
    node.set_attribute({"group", groups});
    node.set_attribute({"pads", std::vector<int64_t>(4, kernel / 2)});
  };
  b.input("x", half, SymbolicShape{1, 3, 56, 56});
  conv("x", "stem", 3, c, 1, 3);
  b.node("Swish", {"stem"}, {"activated"});
  conv("activated", "deep", c, c, c, 5);
  b.initializer("scale", as_type(weights({c, 1, 1}), half));
  b.node("Mul", {"deep", "scale"}, {"scaled"});
  b.node("GlobalAveragePool", {"scaled"}, {"mean"});
  conv("mean", "narrow", c, c, 1, 1);
  b.node("Sigmoid", {"narrow"}, {"gate"});
  b.node("Mul", {"gate", "scaled"}, {"gated"});
  conv("gated", "wide", c, c, 1, 1);
  b.node("Add", {"wide", "activated"}, {"y"});
  b.output("y");
  const auto graph = optimized(b, {"conv-epilogue", "blocked-layout"});
  EXPECT_EQ(operators_of(graph), (List{"tenon.BlockedConv", "tenon.BlockedConv", "Mul", "ReduceMean",
                                       "tenon.BlockedConv", "Mul", "tenon.BlockedConv", "tenon.FromBlocked"}));
}

TEST(BlockedLayout, KeptValuesStayPlain) {
  ModelBuilder b = network();
  const List ops = operators_of(optimized(b, {"blocked-layout"}, {"sum"}));
  EXPECT_EQ(std::ranges::count(ops, "tenon.FromBlocked"), 2);
}

}  // namespace
}  // namespace tenon
