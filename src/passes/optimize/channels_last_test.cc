#include <gtest/gtest.h>

#include <random>

#include "base/byte_layout.h"
#include "pass_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Ops = std::vector<std::string>;

template <typename T>
Tensor random_tensor(Shape shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(element_type_of<T>, std::move(shape));
  for (T& item : tensor.mutable_data<T>()) item = static_cast<T>(random() % 256);
  return tensor;
}

// Quantized layers as QLinear operators.
struct Model : ModelBuilder {
  Model() {
    model().opset_imports.add("com.microsoft", 1);
    initializer("scale", Tensor(Shape{}, {0.02f})).initializer("w_scale", Tensor(Shape{}, {0.01f}));
    initializer("zero", Tensor(Shape{}, {uint8_t{120}})).initializer("w_zero", Tensor(Shape{}, {int8_t{0}}));
    initializer("y_scale", Tensor(Shape{}, {0.3f}));
  }
  // A convolution that keeps the size of its images.
  void conv(const std::string& from, const std::string& to, const Shape& weights, int64_t groups = 1) {
    initializer("w_" + to, random_tensor<int8_t>(weights, static_cast<uint32_t>(weights.elements())));
    ir::Node& node =
        this->node("QLinearConv", {from, "scale", "zero", "w_" + to, "w_scale", "w_zero", "y_scale", "zero"}, {to});
    node.set_attribute({"group", groups});
    node.set_attribute({"pads", Ints(4, weights[2] / 2)});
  }
  void add(const std::string& a, const std::string& b, const std::string& to) {
    node("QLinearAdd", {a, "y_scale", "zero", b, "y_scale", "zero", "y_scale", "zero"}, {to}, "", "com.microsoft");
  }
};

// The operators at level all. All results are the same as without the pass, to the bit.
Ops layout(const ModelBuilder& b) {
  SessionOptions options;
  options.disabled_passes = {"channels-last"};
  Session plain = b.session(options);
  options.disabled_passes.clear();
  Session last = b.session(options);
  NamedValues inputs;
  for (const ValueInfo& info : plain.inputs()) {
    Shape shape;
    for (const std::string& size : info.shape) shape.push_back(std::stoll(size));
    inputs.emplace(info.name, random_tensor<uint8_t>(shape, 5));
  }
  const NamedValues expected = plain.run(inputs), actual = last.run(inputs);
  for (const auto& [name, value] : expected) {
    const Tensor &a = value.tensor(), &c = actual.at(name).tensor();
    EXPECT_EQ(a.shape(), c.shape());
    EXPECT_TRUE(std::ranges::equal(a.data<uint8_t>(), c.data<uint8_t>())) << name;
    EXPECT_GT(std::ranges::max(a.data<uint8_t>()) - std::ranges::min(a.data<uint8_t>()), 20) << "nothing to compare";
  }
  Ops ops;
  for (const NodePlacement& node : last.placement()) ops.push_back(node.op_type);
  return ops;
}

class ChannelsLast : public testing::Test {
 protected:
  void SetUp() override {
    if (!prefers_channels_last()) GTEST_SKIP() << "this CPU has no kernels for it";
  }
};

// One Transpose at the beginning and one at the end, whatever is between.
TEST_F(ChannelsLast, ResidualBlock) {
  Model b;
  b.input("x", ElementType::uint8, SymbolicShape{2, 16, 14, 14});
  b.conv("x", "a", {32, 16, 1, 1});
  b.conv("a", "b", {32, 1, 3, 3}, 32);
  b.conv("b", "c", {32, 32, 3, 3});
  b.add("a", "c", "d");
  ir::Node& pool = b.node("MaxPool", {"d"}, {"e"});
  pool.set_attribute({"kernel_shape", Ints{3, 3}});
  pool.set_attribute({"strides", Ints{2, 2}});
  pool.set_attribute({"pads", Ints{1, 1, 0, 1}});
  b.node("Concat", {"e", "e"}, {"f"}).set_attribute({"axis", int64_t{1}});
  b.conv("f", "y", {8, 64, 1, 1});
  b.output("y");
  EXPECT_EQ(layout(b), (Ops{"Transpose", "QLinearConv", "QLinearConv", "QLinearConv", "QLinearAdd", "NhwcMaxPool",
                            "Concat", "QLinearConv", "Transpose"}));
}

// The first layer takes three channels; means of channels scale them.
TEST_F(ChannelsLast, SqueezeAndExcite) {
  Model b;
  b.input("x", ElementType::uint8, SymbolicShape{1, 3, 33, 31});
  b.conv("x", "a", {24, 3, 3, 3});
  b.node("QLinearGlobalAveragePool", {"a", "y_scale", "zero", "scale", "zero"}, {"mean"}, "", "com.microsoft");
  b.conv("mean", "gate", {24, 24, 1, 1});
  b.node("QLinearMul", {"a", "y_scale", "zero", "gate", "scale", "zero", "y_scale", "zero"}, {"y"}, "",
         "com.microsoft");
  b.output("y");
  EXPECT_EQ(layout(b),
            (Ops{"Transpose", "QLinearConv", "QLinearGlobalAveragePool", "QLinearConv", "QLinearMul", "Transpose"}));
}

// Channels that do not fill groups of four, weights that exceed 8 bits less their zero point, and groups of several
// channels stay as they are.
TEST_F(ChannelsLast, WhereItHasNoKernel) {
  const auto stays = [](auto build) {
    Model b;
    b.input("x", ElementType::uint8, SymbolicShape{1, 16, 9, 9});
    build(b);
    b.output("y");
    EXPECT_EQ(layout(b), (Ops{"QLinearConv"}));
  };
  stays([](Model& b) { b.conv("x", "y", {6, 16, 3, 3}); });
  stays([](Model& b) { b.conv("x", "y", {16, 8, 3, 3}, 2); });
  stays([](Model& b) {
    b.initializer("w", random_tensor<uint8_t>({8, 16, 1, 1}, 3)).initializer("low", Tensor(Shape{}, {uint8_t{3}}));
    b.node("QLinearConv", {"x", "scale", "zero", "w", "w_scale", "low", "y_scale", "zero"}, {"y"});
  });
}

}  // namespace
}  // namespace tenon
