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

TEST(MatMulBias, OfMatrices) {
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
  EXPECT_EQ(optimized(fits, {"matmul-bias"}), "initializer b: tensor(float) [2] = [1, 2]\ny = Gemm(x, w, b)\n");
  EXPECT_EQ(optimized(stack, {"matmul-bias"}),
            "initializer b: tensor(float) [2] = [1, 2]\nproduct = MatMul(x, w)\ny = Add(product, b)\n");
  EXPECT_EQ(optimized(grows, {"matmul-bias"}),
            "initializer b: tensor(float) [1, 1, 2]\nproduct = MatMul(x, w)\ny = Add(product, b)\n");
}

}  // namespace
}  // namespace tenon
