#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim n = Dim::symbol("n");

ModelBuilder conv(const std::string& op = "Conv", int64_t groups = 1) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, op == "Conv" ? groups : 2, 4});
  b.initializer("w", Tensor({2, 1, 1}, {1.0f, 2.0f}));
  b.node(op, {"x", "w"}, {"c"}, "stem").set_attribute({"group", groups});
  return b;
}

// What the model gives before and after, on numbers that are exact however they are computed.
void expect_same_results(const ModelBuilder& builder, Shape shape) {
  SessionOptions plain;
  plain.level = OptimizationLevel::none;
  Tensor x(ElementType::float32, shape);
  float next = 0;
  for (float& number : x.mutable_data<float>()) number = next++;
  Value expected = builder.session(plain).run({{"x", x}})["y"], actual = builder.session().run({{"x", x}})["y"];
  ASSERT_EQ(actual.tensor().shape(), expected.tensor().shape());
  auto a = actual.tensor().data<float>(), e = expected.tensor().data<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], e[i], 1e-4 * std::abs(e[i]) + 1e-6) << i;
}

std::string nodes_only(const std::string& text) {
  std::string result;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    if (!text.compare(start, 11, "initializer") == 0) result += text.substr(start, end - start + 1);
    start = end + 1;
  }
  return result;
}

TEST(ScaleWeights, GoesIntoWeightsAndBias) {
  ModelBuilder b = conv();
  b.initializer("s", Tensor({2, 1}, {10.0f, 100.0f}));
  b.node("Mul", {"s", "c"}, {"y"}, "scale");
  b.output("y");
  expect_same_results(b, {2, 1, 4});
  EXPECT_EQ(optimized(b, {"scale-weights", "fold-constants"}),
            "initializer stem/Mul/tenon_3: tensor(float) [2, 1, 1]\n"
            "y = Conv(x, stem/Mul/tenon_3) {group=1}\n");
}

// Rows of more than one axis have no Gemm that would take the bias first.
TEST(ScaleWeights, GoesThroughABias) {
  const auto scaled = [](const Tensor& bias) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{n, 3, 2});
    b.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})).initializer("b", bias);
    b.initializer("s", Tensor({1, 1, 2}, {10.0f, 100.0f}));
    b.node("MatMul", {"x", "w"}, {"m"});
    b.node("Add", {"m", "b"}, {"biased"});
    b.node("Mul", {"biased", "s"}, {"y"});
    b.output("y");
    expect_same_results(b, {2, 3, 2});
    optimized(b, {"scale-weights"});
    return last_rewrites().size();
  };
  EXPECT_EQ(scaled(Tensor({2}, {0.5f, -1.0f})), 1u);
  EXPECT_EQ(scaled(Tensor({1, 2}, {0.5f, -1.0f})), 1u);
  EXPECT_EQ(scaled(Tensor({3, 1}, {1.0f, 2.0f, 3.0f})), 0u) << "not one per channel";
}

TEST(ScaleWeights, OnlyPerChannel) {
  ModelBuilder b = conv();
  b.initializer("s", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}));
  b.node("Mul", {"c", "s"}, {"y"});
  b.output("y");
  EXPECT_NE(optimized(b, {"scale-weights"}).find("y = Mul(c, s)"), std::string::npos);
}

TEST(ScaleWeights, OfATransposedConvolution) {
  ModelBuilder b = conv("ConvTranspose");
  b.initializer("s", Tensor({1, 1, 1}, {10.0f}));
  b.node("Mul", {"c", "s"}, {"y"});
  b.output("y");
  expect_same_results(b, {1, 2, 4});
  EXPECT_EQ(nodes_only(optimized(b, {"scale-weights", "fold-constants"})),
            "y = ConvTranspose(x, stem/Mul/tenon_3) {group=1}\n");
  ModelBuilder grouped = conv("ConvTranspose", 2);
  grouped.initializer("s", Tensor::scalar(10.0f));
  grouped.node("Mul", {"c", "s"}, {"y"});
  grouped.output("y");
  EXPECT_NE(optimized(grouped, {"scale-weights"}).find("Mul(c, s)"), std::string::npos);
}

TEST(AddBias, ToConvAndGemm) {
  ModelBuilder b = conv();
  b.initializer("s", Tensor({2, 1}, {10.0f, 100.0f})).initializer("t", Tensor::scalar(1.0f));
  b.node("Add", {"s", "c"}, {"a"});
  b.node("Add", {"a", "t"}, {"y"});
  b.output("y");
  expect_same_results(b, {2, 1, 4});
  EXPECT_EQ(nodes_only(optimized(b, {"add-bias", "fold-constants"})), "y = Conv(x, w, stem/Add/tenon_5) {group=1}\n");
}

ModelBuilder dense(SymbolicShape shape, Tensor bias) {
  ModelBuilder b;
  b.input("x", ElementType::float32, std::move(shape));
  b.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})).initializer("b", std::move(bias));
  b.node("MatMul", {"x", "w"}, {"product"}, "dense");
  b.node("Add", {"product", "b"}, {"y"});
  b.output("y");
  return b;
}

TEST(AddBias, OfMatricesOnly) {
  ModelBuilder fits = dense({n, 2}, Tensor({2}, {1.0f, 2.0f})), stack = dense({1, n, 2}, Tensor({2}, {1.0f, 2.0f})),
               grows = dense({n, 2}, Tensor({1, 1, 2}, {1.0f, 2.0f}));
  expect_same_results(fits, {3, 2});
  EXPECT_EQ(nodes_only(optimized(fits, {"add-bias"})), "y = Gemm(x, w, dense/constant/tenon_0)\n");
  for (ModelBuilder* b : {&stack, &grows})
    EXPECT_EQ(nodes_only(optimized(*b, {"add-bias", "matmul-bias"})), "product = MatMul(x, w)\ny = Add(product, b)\n");
}

TEST(MatMulBias, OfComputedMatrices) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{n, 2}).input("w", ElementType::float32, SymbolicShape{2, 2});
  b.initializer("b", Tensor({2}, {1.0f, 2.0f}));
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Add", {"b", "product"}, {"y"});
  b.output("y");
  EXPECT_EQ(nodes_only(optimized(b, {"matmul-bias"})), "y = Gemm(x, w, b)\n");
}

ModelBuilder normalized(ModelBuilder b, const std::string& input) {
  b.initializer("scale", Tensor({2}, {2.0f, 4.0f})).initializer("shift", Tensor({2}, {1.0f, 1.0f}));
  b.initializer("mean", Tensor({2}, {3.0f, 5.0f})).initializer("variance", Tensor({2}, {4.0f, 16.0f}));
  b.node("BatchNormalization", {input, "scale", "shift", "mean", "variance"}, {"y"}, "norm");
  b.output("y");
  return b;
}

TEST(BatchNorm, GoesIntoConvAndGemm) {
  ModelBuilder image = normalized(conv(), "c");
  expect_same_results(image, {2, 1, 4});
  EXPECT_EQ(nodes_only(optimized(image, {"batch-norm", "fold-constants"})).find("y = Conv(x, "), 0u);
  ModelBuilder rows;
  rows.input("x", ElementType::float32, SymbolicShape{n, 2});
  rows.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f}));
  rows.node("MatMul", {"x", "w"}, {"p"}, "dense");
  rows = normalized(std::move(rows), "p");
  expect_same_results(rows, {3, 2});
  EXPECT_EQ(nodes_only(optimized(rows, {"batch-norm", "fold-constants"})).find("y = Gemm(x, "), 0u);
}

TEST(BatchNorm, StaysInTrainingAndWhereTheConvIsNeeded) {
  ModelBuilder needed = normalized(conv(), "c");
  needed.output("c");
  EXPECT_NE(optimized(needed, {"batch-norm"}).find("BatchNormalization"), std::string::npos);
  ModelBuilder trained = normalized(conv(), "c");
  trained.graph().nodes().back().set_attribute({"training_mode", int64_t{1}});
  EXPECT_NE(optimized(trained, {"batch-norm"}).find("BatchNormalization"), std::string::npos);
}

TEST(Pad, GoesIntoConvAndAveragePool) {
  auto model = [](const char* op, std::vector<int64_t> pads, std::optional<float> value) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{n, 1, 4}).initializer("w", Tensor({1, 1, 2}, {1.0f, 2.0f}));
    b.initializer("pads", Tensor(Shape{static_cast<int64_t>(pads.size())}, std::span<const int64_t>(pads)));
    if (value) b.initializer("value", Tensor::scalar(*value));
    b.node("Pad", value ? std::vector<std::string>{"x", "pads", "value"} : std::vector<std::string>{"x", "pads"},
           {"p"});
    ir::Node& node = b.node(
        op, std::string(op) == "Conv" ? std::vector<std::string>{"p", "w"} : std::vector<std::string>{"p"}, {"y"});
    if (std::string(op) != "Conv") node.set_attribute({"kernel_shape", std::vector<int64_t>{2}});
    b.output("y");
    return b;
  };
  ModelBuilder image = model("Conv", {0, 0, 1, 0, 0, 2}, std::nullopt),
               pool = model("AveragePool", {0, 0, 1, 0, 0, 0}, 0.0f);
  expect_same_results(image, {1, 1, 4});
  expect_same_results(pool, {1, 1, 4});
  EXPECT_EQ(nodes_only(optimized(image, {"pad"})), "y = Conv(x, w) {pads=[1, 2]}\n");
  EXPECT_EQ(nodes_only(optimized(pool, {"pad"})),
            "y = AveragePool(x) {kernel_shape=[2], pads=[1, 0], count_include_pad=1}\n");
  ModelBuilder channels = model("Conv", {0, 0, 0, 1, 0, 0}, std::nullopt),
               ones = model("Conv", {0, 0, 1, 0, 0, 0}, 1.0f), crops = model("Conv", {0, 0, -1, 0, 0, 0}, std::nullopt),
               largest = model("MaxPool", {0, 0, 1, 0, 0, 0}, 0.0f);
  for (ModelBuilder* b : {&channels, &ones, &crops, &largest})
    EXPECT_NE(optimized(*b, {"pad"}).find("Pad("), std::string::npos);
}

}  // namespace
}  // namespace tenon
