#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

TEST(DeadCode, RemovesWhatNoOutputNeeds) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.initializer("w", Tensor({2}, {1.0f, 2.0f}));
  b.node("Mul", {"x", "w"}, {"a"});
  b.node("Exp", {"a"}, {"unused"});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"dead-code"}), "y = Relu(x)\n");
}

TEST(FoldConstants, ComputesWhatDependsOnConstantsOnly) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.initializer("w", Tensor({2}, {1.0f, 2.0f}));
  b.node("Mul", {"w", "w"}, {"a"});
  b.node("Neg", {"a"}, {"b"});
  b.node("Add", {"x", "b"}, {"y"});
  b.output("y");
  EXPECT_EQ(optimized(b, {"fold-constants"}), "initializer b: tensor(float) [2] = [-1, -4]\ny = Add(x, b)\n");
}

TEST(FoldConstants, LeavesWhatGrowsAndWhatIsRandom) {
  ModelBuilder b;
  b.initializer("shape", Tensor({1}, {int64_t{1} << 20}));
  b.node("ConstantOfShape", {"shape"}, {"zeros"});
  b.node("RandomUniformLike", {"shape"}, {"noise"}).set_attribute({"dtype", int64_t{1}});
  b.output("zeros").output("noise");
  EXPECT_EQ(optimized(b, {"fold-constants"}),
            "initializer shape: tensor(int64) [1] = [1048576]\n"
            "zeros = ConstantOfShape(shape)\n"
            "noise = RandomUniformLike(shape) {dtype=1}\n");
}

TEST(GemmBias, OfMatrices) {
  auto model = [](int64_t batch_axes, Tensor bias) {
    ModelBuilder b;
    SymbolicShape shape = batch_axes == 1 ? SymbolicShape{Dim::symbol("n"), 2} : SymbolicShape{1, Dim::symbol("n"), 2};
    b.input("x", ElementType::float32, shape).input("w", ElementType::float32, SymbolicShape{2, 2});
    b.initializer("b", std::move(bias));
    b.node("MatMul", {"x", "w"}, {"product"});
    b.node("Add", {"product", "b"}, {"y"});
    b.output("y");
    return b;
  };
  ModelBuilder fits = model(1, Tensor({2}, {1.0f, 2.0f})), stack = model(2, Tensor({2}, {1.0f, 2.0f})),
               grows = model(1, Tensor({1, 1, 2}, {1.0f, 2.0f}));
  EXPECT_EQ(optimized(fits, {"gemm-bias"}), "initializer b: tensor(float) [2] = [1, 2]\ny = Gemm(x, w, b)\n");
  EXPECT_EQ(optimized(stack, {"gemm-bias"}),
            "initializer b: tensor(float) [2] = [1, 2]\nproduct = MatMul(x, w)\ny = Add(product, b)\n");
  EXPECT_EQ(optimized(grows, {"gemm-bias"}),
            "initializer b: tensor(float) [1, 1, 2]\nproduct = MatMul(x, w)\ny = Add(product, b)\n");
}

TEST(ConvScale, GoesIntoWeightsAndBias) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, 1, 4});
  b.initializer("w", Tensor({2, 1, 1}, {1.0f, 2.0f})).initializer("b", Tensor({2}, {3.0f, 4.0f}));
  b.initializer("s", Tensor({2, 1}, {10.0f, 100.0f}));
  b.node("Conv", {"x", "w", "b"}, {"c"}, "stem");
  b.node("Mul", {"s", "c"}, {"y"}, "scale");
  b.output("y");
  EXPECT_EQ(optimized(b, {"conv-scale", "fold-constants"}),
            "initializer stem/Mul/tenon_1: tensor(float) [2, 1, 1]\n"
            "initializer stem/Mul/tenon_3: tensor(float) [2] = [30, 400]\n"
            "y = Conv(x, stem/Mul/tenon_1, stem/Mul/tenon_3)\n");
}

}  // namespace
}  // namespace tenon
