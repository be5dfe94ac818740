#include <gtest/gtest.h>

#include "base/channel_block.h"
#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");

ModelBuilder conv() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 6, 6});
  b.input("z", ElementType::float32, SymbolicShape{batch, 4, 4, 4});
  Tensor w(ElementType::float32, Shape{4, 3, 3, 3});
  float at = 0;
  for (float& item : w.mutable_data<float>()) item = 0.1f * (at += at > 5 ? -9.5f : 1.3f);
  b.initializer("w", std::move(w)).initializer("b", Tensor({4}, {1.0f, -1.0f, 0.5f, 0.0f}));
  b.initializer("low", Tensor(Shape{}, {0.0f})).initializer("high", Tensor(Shape{}, {6.0f}));
  b.node("Conv", {"x", "w", "b"}, {"c"}, "stem").set_attribute({"group", int64_t{1}});
  return b;
}

// The line of the last node.
std::string last_node(const std::string& text) {
  const size_t start = text.find_last_of('\n', text.size() - 2) + 1;
  return text.substr(start, text.size() - start - 1);
}

TEST(ConvEpilogue, ResidualAndActivation) {
  ModelBuilder relu = conv(), residual = conv(), both = conv();
  relu.node("Relu", {"c"}, {"y"});
  residual.node("Add", {"z", "c"}, {"y"});
  both.node("Add", {"c", "z"}, {"sum"});
  both.node("Clip", {"sum", "low", "high"}, {"y"});
  for (ModelBuilder* b : {&relu, &residual, &both}) {
    b->output("y");
    EXPECT_LT(change_by_extended(*b), 1e-5);
  }
  const std::vector<std::string> passes = {"conv-epilogue"};
  EXPECT_EQ(last_node(optimized(relu, passes)), "y = tenon.FusedConv(x, w, b) {group=1, activation=\"Relu\"}");
  EXPECT_EQ(last_node(optimized(residual, passes)), "y = tenon.FusedConv(x, w, b, z) {group=1}");
  EXPECT_EQ(last_node(optimized(both, passes)),
            "y = tenon.FusedConv(x, w, b, z) {group=1, activation=\"Clip\", activation_params=[0, 6]}");
}

TEST(ConvEpilogue, EveryActivation) {
  for (const char* op : {"Sigmoid", "Tanh", "HardSwish", "Swish", "Gelu"}) {
    ModelBuilder b = conv();
    b.node(op, {"c"}, {"y"});
    b.output("y");
    EXPECT_LT(change_by_extended(b), 1e-5);
    EXPECT_EQ(last_node(optimized(b, {"conv-epilogue"})),
              "y = tenon.FusedConv(x, w, b) {group=1, activation=\"" + std::string(op) + "\"}");
  }
}

TEST(ConvEpilogue, NotWhenTheResultIsUsedKeptOrBroadcast) {
  auto unchanged = [](ModelBuilder& b, const std::vector<std::string>& keep = {}) {
    b.output("y");
    optimized(b, {"conv-epilogue"}, keep);
    return last_rewrites().empty();
  };
  ModelBuilder used = conv(), kept = conv(), grows = conv(), steep = conv(), itself = conv();
  used.node("Relu", {"c"}, {"y"});
  used.output("c");
  EXPECT_TRUE(unchanged(used));
  kept.node("Relu", {"c"}, {"y"});
  EXPECT_TRUE(unchanged(kept, {"c"}));
  grows.input("stack", ElementType::float32, SymbolicShape{2, batch, 4, 4, 4});
  grows.node("Add", {"c", "stack"}, {"y"});
  EXPECT_TRUE(unchanged(grows));
  steep.node("Swish", {"c"}, {"y"}).set_attribute({"alpha", 2.0f});
  EXPECT_TRUE(unchanged(steep));
  itself.node("Add", {"c", "c"}, {"y"});
  EXPECT_TRUE(unchanged(itself));
}

TEST(MatMulEpilogue, BiasResidualAndActivation) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 2})
      .input("z", ElementType::float32, SymbolicShape{batch, 3, 4});
  b.initializer("w", Tensor({2, 4}, {1.0f, 2.0f, -3.0f, 4.0f, 5.0f, -6.0f, 7.0f, 8.0f}));
  b.initializer("b", Tensor({4}, {1.0f, -1.0f, 0.5f, 0.0f}));
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Add", {"b", "product"}, {"shifted"});
  b.node("Add", {"shifted", "z"}, {"sum"});
  b.node("Gelu", {"sum"}, {"y"}).set_attribute({"approximate", std::string("tanh")});
  b.output("y");
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(last_node(optimized(b, {"matmul-epilogue"})),
            "y = tenon.FusedMatMul(x, w, b, z) {activation=\"TanhGelu\"}");
}

ModelBuilder gemm(bool flattened, float beta = 1, const Shape& c = {4}) {
  ModelBuilder b;
  b.input("x", ElementType::float32, flattened ? SymbolicShape{batch, 3, 2} : SymbolicShape{batch, 2});
  b.input("z", ElementType::float32, flattened ? SymbolicShape{batch, 3, 4} : SymbolicShape{batch, 4});
  b.initializer("w", Tensor({4, 2}, {1.0f, 2.0f, -3.0f, 4.0f, 5.0f, -6.0f, 7.0f, 8.0f}));
  b.initializer("b", Tensor(c, {1.0f, -1.0f, 0.5f, 0.0f}));
  b.initializer("rows", Tensor({2}, {int64_t{-1}, int64_t{2}}));
  b.initializer("back", Tensor({3}, {int64_t{-1}, int64_t{3}, int64_t{4}}));
  if (flattened) b.node("Reshape", {"x", "rows"}, {"flat"});
  ir::Node& node = b.node("Gemm", {flattened ? "flat" : "x", "w", "b"}, {flattened ? "product" : "shaped"});
  node.set_attribute({"beta", beta});
  node.set_attribute({"transB", int64_t{1}});
  if (flattened) b.node("Reshape", {"product", "back"}, {"shaped"});
  return b;
}

TEST(MatMulEpilogue, OfGemm) {
  for (bool flattened : {false, true}) {
    ModelBuilder b = gemm(flattened);
    b.node("Add", {"shaped", "z"}, {"sum"});
    b.node("Relu", {"sum"}, {"y"});
    b.output("y");
    EXPECT_LT(change_by_extended(b), 1e-5);
    EXPECT_EQ(last_node(optimized(b, {"matmul-epilogue"})),
              "y = tenon.FusedMatMul(x, w, b, z) {transB=1, activation=\"Relu\"}");
  }
  ModelBuilder alone = gemm(true), scaled = gemm(false, 0.5f), matrix = gemm(false, 1, {1, 4});
  alone.output("shaped");
  for (ModelBuilder* b : {&scaled, &matrix}) {
    b->node("Relu", {"shaped"}, {"y"});
    b->output("y");
  }
  for (ModelBuilder* b : {&alone, &scaled, &matrix}) {
    optimized(*b, {"matmul-epilogue"});
    EXPECT_TRUE(last_rewrites().empty());
  }
}

TEST(MatMulEpilogue, NotOfComputedMatrices) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{3, 2}).input("w", ElementType::float32, SymbolicShape{2, 4});
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Relu", {"product"}, {"y"});
  b.output("y");
  optimized(b, {"matmul-epilogue"});
  EXPECT_TRUE(last_rewrites().empty());
}

ModelBuilder normalization() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 2, 3, 3});
  b.initializer("scale", Tensor({2}, {1.0f, -2.0f})).initializer("shift", Tensor({2}, {0.5f, 0.25f}));
  b.initializer("mean", Tensor({2}, {0.5f, 1.0f})).initializer("variance", Tensor({2}, {4.0f, 0.25f}));
  b.node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"}).set_attribute({"epsilon", 0.0f});
  return b;
}

TEST(BatchNormActivation, IsAScaleAndAShift) {
  ModelBuilder alone = normalization(), relu = normalization();
  alone.output("n");
  relu.node("Relu", {"n"}, {"y"});
  relu.output("y");
  const std::vector<std::string> passes = {"batch-norm-activation"};
  for (ModelBuilder* b : {&alone, &relu}) EXPECT_LT(change_by_extended(*b), 1e-6);
  EXPECT_EQ(last_node(optimized(alone, passes)).substr(0, 24), "n = tenon.ChannelAffine(");
  const std::string text = optimized(relu, passes);
  EXPECT_EQ(last_node(text).substr(0, 24), "y = tenon.ChannelAffine(");
  EXPECT_NE(last_node(text).find("{activation=\"Relu\"}"), std::string::npos) << text;
  EXPECT_NE(text.find("[0.5, -4]"), std::string::npos) << text;
  EXPECT_NE(text.find("[0.25, 4.25]"), std::string::npos) << text;
}

TEST(BatchNormActivation, IsAProductAndASumInHalfPrecision) {
  const auto halves = [](float first, float second) {
    return Tensor(Shape{2}, std::initializer_list<float16>{float16(first), float16(second)});
  };
  ModelBuilder b;
  b.input("x", ElementType::float16, SymbolicShape{batch, 2, 3, 3});
  b.initializer("scale", halves(1, -2)).initializer("shift", halves(0.5f, 0.25f));
  b.initializer("mean", halves(0.5f, 1)).initializer("variance", halves(4, 0.25f));
  b.node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"}).set_attribute({"epsilon", 0.0f});
  b.output("n");
  if (half_channel_block() > 0) {
    EXPECT_LT(change_by_extended(b), 0.01);
  }
  const std::string text = optimized(b, {"batch-norm-activation"});
  EXPECT_EQ(text.find("BatchNormalization") == std::string::npos, half_channel_block() > 0) << text;
  EXPECT_EQ(last_node(text).substr(0, 8) == "n = Add(", half_channel_block() > 0) << text;
}

TEST(BatchNormActivation, NotInTrainingOrWithComputedNumbers) {
  ModelBuilder training = normalization(), computed;
  training.graph().nodes().back().set_attribute({"training_mode", int64_t{1}});
  training.output("n");
  computed.input("x", ElementType::float32, SymbolicShape{batch, 2, 3, 3});
  computed.input("s", ElementType::float32, SymbolicShape{2});
  computed.node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"n"});
  computed.output("n");
  for (ModelBuilder* b : {&training, &computed}) {
    optimized(*b, {"batch-norm-activation"});
    EXPECT_TRUE(last_rewrites().empty());
  }
}

}  // namespace
}  // namespace tenon
