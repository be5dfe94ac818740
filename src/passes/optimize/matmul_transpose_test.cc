#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");
const std::vector<std::string> passes = {"matmul-transpose"};

ModelBuilder matrices(const SymbolicShape& a, const SymbolicShape& b, ElementType type = ElementType::float32) {
  ModelBuilder builder;
  builder.input("a", type, a).input("b", type, b);
  builder.initializer("half", Tensor(Shape{}, {0.5f})).initializer("list", Tensor({2}, {0.5f, 0.5f}));
  return builder;
}

void add_transpose(ModelBuilder& b, const std::string& x, const std::string& y, std::vector<int64_t> permutation) {
  b.node("Transpose", {x}, {y}).set_attribute({"perm", std::move(permutation)});
}

std::string nodes(const std::string& text) {
  size_t start = 0;
  while (text.compare(start, 11, "initializer") == 0) start = text.find('\n', start) + 1;
  return text.substr(start);
}

TEST(MatMulTranspose, OnEitherSideAndScaled) {
  ModelBuilder right = matrices({batch, 2, 3}, {batch, 4, 3}), left = matrices({batch, 3, 2}, {batch, 3, 4}),
               both = matrices({3, 2}, {batch, 4, 3});
  add_transpose(right, "b", "bt", {0, 2, 1});
  right.node("MatMul", {"a", "bt"}, {"product"});
  right.node("Div", {"product", "half"}, {"y"});
  add_transpose(left, "a", "at", {0, 2, 1});
  left.node("Mul", {"half", "at"}, {"scaled"});
  left.node("MatMul", {"scaled", "b"}, {"y"});
  add_transpose(both, "a", "at", {1, 0});
  both.node("Mul", {"b", "half"}, {"scaled"});
  add_transpose(both, "scaled", "bt", {0, 2, 1});
  both.node("MatMul", {"at", "bt"}, {"product"});
  both.node("Mul", {"product", "half"}, {"y"});
  for (ModelBuilder* b : {&right, &left, &both}) {
    b->output("y");
    EXPECT_LT(change_by_extended(*b), 1e-5);
  }
  EXPECT_EQ(nodes(optimized(right, passes)), "y = tenon.FusedMatMul(a, b) {transA=0, transB=1, alpha=2}\n");
  EXPECT_EQ(nodes(optimized(left, passes)), "y = tenon.FusedMatMul(a, b) {transA=1, transB=0, alpha=0.5}\n");
  EXPECT_EQ(nodes(optimized(both, passes)), "y = tenon.FusedMatMul(a, b) {transA=1, transB=1, alpha=0.25}\n");
}

TEST(MatMulTranspose, LeavesScoresToAttention) {
  ModelBuilder b = matrices({batch, 2, 3, 4}, {batch, 2, 3, 4});
  add_transpose(b, "b", "bt", {0, 1, 3, 2});
  b.node("MatMul", {"a", "bt"}, {"product"});
  b.node("Mul", {"product", "half"}, {"scores"});
  b.node("Softmax", {"scores"}, {"y"});
  b.output("y");
  optimized(b, passes);
  EXPECT_TRUE(last_rewrites().empty());
}

TEST(MatMulTranspose, NotOfOtherAxesOrTypesOrUsedValues) {
  auto unchanged = [](ModelBuilder& b, const std::string& output = "y", const std::vector<std::string>& keep = {}) {
    b.output(output);
    optimized(b, passes, keep);
    return last_rewrites().empty();
  };
  auto transposed = [](std::vector<int64_t> permutation, ElementType type = ElementType::float32) {
    ModelBuilder b = matrices({2, 2, 2}, {2, 2, 2}, type);
    add_transpose(b, "b", "bt", std::move(permutation));
    b.node("MatMul", {"a", "bt"}, {"y"});
    return b;
  };
  ModelBuilder outer = transposed({1, 0, 2}), wide = transposed({0, 2, 1}, ElementType::float64),
               used = transposed({0, 2, 1}), kept = transposed({0, 2, 1}), plain = matrices({2, 2}, {2, 2}),
               vector = matrices({2}, {2, 2}), divided = matrices({2, 2}, {2, 2}), many = matrices({2, 2}, {2, 2});
  EXPECT_TRUE(unchanged(outer));
  EXPECT_TRUE(unchanged(wide));
  used.output("bt");
  EXPECT_TRUE(unchanged(used));
  EXPECT_TRUE(unchanged(kept, "y", {"bt"}));
  plain.node("MatMul", {"a", "b"}, {"y"});
  EXPECT_TRUE(unchanged(plain));
  add_transpose(vector, "b", "bt", {1, 0});
  vector.node("MatMul", {"a", "bt"}, {"y"});
  EXPECT_TRUE(unchanged(vector));
  divided.node("MatMul", {"a", "b"}, {"product"});
  divided.node("Div", {"half", "product"}, {"y"});
  EXPECT_TRUE(unchanged(divided));
  many.node("MatMul", {"a", "b"}, {"product"});
  many.node("Mul", {"list", "product"}, {"y"});
  EXPECT_TRUE(unchanged(many));
}

}  // namespace
}  // namespace tenon
