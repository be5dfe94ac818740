#include <gtest/gtest.h>

#include <algorithm>

#include "base/channel_block.h"
#include "pass_test.h"

namespace tenon {
namespace {

const std::vector<int64_t> first = {0, 3, 1, 2}, last = {0, 2, 3, 1};

void add_transpose(ModelBuilder& b, const std::string& from, const std::string& to, const std::vector<int64_t>& p) {
  b.node("Transpose", {from}, {to}).set_attribute({"perm", p});
}

// Images a and b with channels last, and brought to channels first: ta and tb.
ModelBuilder images() {
  ModelBuilder b;
  for (const std::string name : {"a", "b"}) {
    b.input(name, ElementType::float32, SymbolicShape{Dim::symbol("batch"), 5, 6, 4});
    add_transpose(b, name, "t" + name, first);
  }
  b.initializer("scale", Tensor({4, 1, 1}, {1.0f, -2.0f, 0.5f, 3.0f}));
  return b;
}

TEST(SinkTransposes, ThroughArithmetic) {
  ModelBuilder b = images();
  b.node("Mul", {"ta", "scale"}, {"m"});
  b.node("Add", {"m", "tb"}, {"y"});
  b.output("y").output("tb");
  EXPECT_LT(change_by_extended(b), 1e-6);
  EXPECT_EQ(optimized(b, {"sink-transposes", "dead-code"}),
            "initializer /constant/tenon_0: tensor(float) [1, 1, 1, 4]\n"
            "tb = Transpose(b) {perm=[0, 3, 1, 2]}\n"
            "/Mul/tenon_1 = Mul(a, /constant/tenon_0)\n"
            "/Add/tenon_3 = Add(/Mul/tenon_1, b)\n"
            "y = Transpose(/Add/tenon_3) {perm=[0, 3, 1, 2]}\n");
}

// A sum of a product of matrices and of a convolved image goes into the former.
TEST(SinkTransposes, ConvolvedImages) {
  const auto sum = [](bool is_product) {
    ModelBuilder b = images();
    b.input("x", ElementType::float32, SymbolicShape{1, 3, 5, 6});
    b.initializer("w", Tensor({4, 3, 1, 1}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 1.0f, 2.0f, 3.0f}));
    b.node("Conv", {"x", "w"}, {"c"});
    b.initializer("v", Tensor({4, 4}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 1.0f, 2.0f, 3.0f, 4.0f,
                                       5.0f, 6.0f, 7.0f}));
    b.node(is_product ? "MatMul" : "Sub", {"a", is_product ? "v" : "b"}, {"p"});
    add_transpose(b, "p", "tp", first);
    b.node("Add", {"c", "tp"}, {"y"});
    b.output("y");
    EXPECT_LT(change_by_extended(b), 1e-5);
    optimized(b, {"sink-transposes"});
    return last_rewrites().size();
  };
  EXPECT_EQ(sum(true), 1u);
  EXPECT_EQ(sum(false), 0u);
}

TEST(SinkTransposes, NotOtherwise) {
  const auto unchanged = [](ModelBuilder& b) {
    b.output("y");
    optimized(b, {"sink-transposes"});
    return last_rewrites().empty();
  };
  ModelBuilder kept = images(), other = images(), moved = images();
  kept.node("Mul", {"ta", "scale"}, {"y"});
  kept.output("ta");
  EXPECT_TRUE(unchanged(kept)) << "no Transpose would go";
  other.input("x", ElementType::float32, SymbolicShape{1, 4, 5, 6});
  other.node("Add", {"ta", "x"}, {"y"});
  EXPECT_TRUE(unchanged(other)) << "an image that is not transposed";
  moved.initializer("image", Tensor(ElementType::float32, Shape{1, 4, 5, 6}));
  moved.node("Add", {"ta", "image"}, {"y"});
  EXPECT_TRUE(unchanged(moved)) << "a constant whose elements would move";
}

// Between blocked layout and channels last.
TEST(BlockedTransposes, MoveWholeBlocks) {
  const int64_t block = channel_block(best_isa()), channels = 3 * block;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 7, 5, channels});
  add_transpose(b, "x", "t", first);
  b.node("ToBlocked", {"t"}, {"blocked"}, "", "tenon").set_attribute({"block", block});
  b.node("Relu", {"blocked"}, {"r"});
  b.node("FromBlocked", {"r"}, {"plain"}, "", "tenon").set_attribute({"block", block});
  add_transpose(b, "plain", "y", last);
  b.output("y");
  Tensor x(ElementType::float32, Shape{2, 7, 5, channels});
  float next = -100;
  for (float& number : x.mutable_data<float>()) number = next += 0.25f;
  std::vector<Tensor> results;
  for (OptimizationLevel level : {OptimizationLevel::none, OptimizationLevel::all}) {
    SessionOptions options;
    options.level = level;
    results.push_back(b.session(options).run({{"x", x}}).at("y").tensor());
  }
  EXPECT_TRUE(std::ranges::equal(results[0].data<float>(), results[1].data<float>()));
  const std::string text = optimized(b, {"blocked-transposes"});
  EXPECT_EQ(last_rewrites().size(), 2u);
  EXPECT_EQ(text.find("ToBlocked"), std::string::npos) << text;
  EXPECT_EQ(text.find("FromBlocked"), std::string::npos) << text;
}

TEST(BlockedTransposes, NotPartsOfBlocks) {
  const int64_t block = channel_block(best_isa());
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, 7, 5, block + 1});
  add_transpose(b, "x", "t", first);
  b.node("ToBlocked", {"t"}, {"blocked"}, "", "tenon").set_attribute({"block", block});
  b.node("FromBlocked", {"blocked"}, {"plain"}, "", "tenon").set_attribute({"block", block});
  b.graph().nodes().back().set_attribute({"channels", block + 1});
  add_transpose(b, "plain", "y", last);
  b.output("y");
  optimized(b, {"blocked-transposes"});
  EXPECT_TRUE(last_rewrites().empty());
}

}  // namespace
}  // namespace tenon
