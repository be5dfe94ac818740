#include <gtest/gtest.h>

#include <limits>

#include "pass_test.h"

namespace tenon {
namespace {

using Strings = std::vector<std::string>;

const Dim batch = Dim::symbol("batch"), queries = Dim::symbol("queries"), keys = Dim::symbol("keys");

// Inputs of four query heads of size 8, and as many heads of keys and values.
ModelBuilder heads(int64_t kv_heads = 4) {
  ModelBuilder b;
  b.input("q", ElementType::float32, SymbolicShape{batch, 4, queries, 8});
  b.input("k", ElementType::float32, SymbolicShape{batch, kv_heads, keys, 8});
  b.input("v", ElementType::float32, SymbolicShape{batch, kv_heads, keys, 8});
  b.initializer("scale", Tensor(Shape{}, {0.5f}));
  b.initializer("zero", Tensor(Shape{}, {0.0f}));
  b.initializer("hidden", Tensor(Shape{}, {-std::numeric_limits<float>::infinity()}));
  return b;
}

void add_transpose(ModelBuilder& b, const std::string& x, const std::string& y, std::vector<int64_t> permutation) {
  b.node("Transpose", {x}, {y}).set_attribute({"perm", std::move(permutation)});
}

// The end of the pattern, from scores to y.
void add_weights(ModelBuilder& b, const std::string& scores, const std::string& v) {
  b.node("Softmax", {scores}, {"weights"}).set_attribute({"axis", int64_t{-1}});
  b.node("MatMul", {"weights", v}, {"y"});
  b.output("y");
}

// The lines from the first node on.
std::string nodes(const std::string& text) {
  size_t start = 0;
  while (text.compare(start, 11, "initializer") == 0) start = text.find('\n', start) + 1;
  return text.substr(start);
}

TEST(Attention, ScaledBeforeOrAfter) {
  for (const char* where : {"queries and keys", "scores", "divided scores", "nowhere"}) {
    const std::string at = where;
    ModelBuilder b = heads();
    add_transpose(b, "k", "kt", {0, 1, 3, 2});
    std::string q = "q", kt = "kt", scores = "product", factor = "1";
    if (at == "queries and keys") {
      b.node("Mul", {"q", "scale"}, {q = "q.scaled"});
      b.node("Mul", {"scale", "kt"}, {kt = "kt.scaled"});
      factor = "0.25";
    }
    b.node("MatMul", {q, kt}, {"product"});
    if (at == "scores") {
      b.node("Mul", {"scale", "product"}, {scores = "scores"});
      factor = "0.5";
    } else if (at == "divided scores") {
      b.node("Div", {"product", "scale"}, {scores = "scores"});
      factor = "2";
    }
    add_weights(b, scores, "v");
    EXPECT_LT(change_by_extended(b), 1e-5);
    EXPECT_EQ(nodes(optimized(b, {"attention"})), "y = Attention(q, k, v) {scale=" + factor + "}\n");
  }
}

TEST(Attention, WithMasks) {
  for (const std::string cleared : {"", "IsNaN", "Equal"}) {
    ModelBuilder b = heads();
    b.initializer("last", Tensor({1}, {int64_t{-1}}));
    b.input("seen", ElementType::boolean, SymbolicShape{batch, 1, queries, keys});
    add_transpose(b, "k", "kt", {0, 1, 3, 2});
    b.node("MatMul", {"q", "kt"}, {"product"});
    b.node("Where", {"seen", "zero", "hidden"}, {"mask"});
    b.node("Add", {"product", "mask"}, {"scores"});
    b.node("Softmax", {"scores"}, {"softmax"});
    std::string weights = "softmax";
    if (cleared == "IsNaN") b.node("IsNaN", {"softmax"}, {"nothing"});
    if (cleared == "Equal") {
      b.node("ReduceMax", {"scores", "last"}, {"largest"});
      b.node("Equal", {"largest", "hidden"}, {"nothing"});
    }
    if (!cleared.empty()) b.node("Where", {"nothing", "zero", "softmax"}, {weights = "weights"});
    b.node("MatMul", {weights, "v"}, {"y"});
    b.output("y");
    // Random masks hide whole rows, which are NaN when they are not cleared.
    if (!cleared.empty()) {
      EXPECT_LT(change_by_extended(b), 1e-5);
    }
    EXPECT_EQ(nodes(optimized(b, {"attention"})), "y = Attention(q, k, v, seen) {scale=1}\n");
  }
  ModelBuilder added = heads();
  added.input("bias", ElementType::float32, SymbolicShape{4, queries, keys});
  add_transpose(added, "k", "kt", {0, 1, 3, 2});
  added.node("MatMul", {"q", "kt"}, {"product"});
  added.node("Add", {"bias", "product"}, {"scores"});
  add_weights(added, "scores", "v");
  EXPECT_LT(change_by_extended(added), 1e-5);
  EXPECT_EQ(nodes(optimized(added, {"attention"})), "y = Attention(q, k, v, bias) {scale=1}\n");
}

TEST(Attention, KeysTransposedWithTheirHeads) {
  ModelBuilder b = heads();
  b.input("keys", ElementType::float32, SymbolicShape{batch, keys, 4, 8});
  add_transpose(b, "keys", "kt", {0, 2, 3, 1});
  b.node("MatMul", {"q", "kt"}, {"product"});
  add_weights(b, "product", "v");
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(nodes(optimized(b, {"attention"})),
            "/Transpose/tenon_0 = Transpose(keys) {perm=[0, 2, 1, 3]}\n"
            "y = Attention(q, /Transpose/tenon_0, v) {scale=1}\n");
}

TEST(Attention, KeysTransposedAsAStackOfMatrices) {
  ModelBuilder b = heads();
  b.node("Shape", {"k"}, {"shape"});
  b.initializer("order", Tensor({4}, {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{2}}));
  b.initializer("stack", Tensor({1}, {int64_t{-1}}));
  b.node("Shape", {"k"}, {"matrix"}).set_attribute({"start", int64_t{2}});
  b.node("Concat", {"stack", "matrix"}, {"flat"}).set_attribute({"axis", int64_t{0}});
  b.node("Gather", {"shape", "order"}, {"swapped"});
  b.node("Reshape", {"k", "flat"}, {"matrices"});
  add_transpose(b, "matrices", "transposed", {0, 2, 1});
  b.node("Reshape", {"transposed", "swapped"}, {"kt"});
  b.node("MatMul", {"q", "kt"}, {"product"});
  add_weights(b, "product", "v");
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(nodes(optimized(b, {"attention"})), "y = Attention(q, k, v) {scale=1}\n");
}

TEST(Attention, OfGroupedQueries) {
  ModelBuilder b = heads(2);
  b.initializer("two", Tensor({1}, {int64_t{2}}));
  b.initializer("repeats", Tensor({5}, {int64_t{1}, int64_t{1}, int64_t{2}, int64_t{1}, int64_t{1}}));
  b.initializer("joined", Tensor({4}, {int64_t{0}, int64_t{4}, int64_t{-1}, int64_t{8}}));
  for (const char* x : {"k", "v"}) {
    const std::string name = x;
    b.node("Unsqueeze", {name, "two"}, {name + ".alone"});
    b.node("Expand", {name + ".alone", "repeats"}, {name + ".many"});
    b.node("Reshape", {name + ".many", "joined"}, {name + ".repeated"});
  }
  add_transpose(b, "k.repeated", "kt", {0, 1, 3, 2});
  b.node("MatMul", {"q", "kt"}, {"product"});
  add_weights(b, "product", "v.repeated");
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(nodes(optimized(b, {"attention"})), "y = Attention(q, k, v) {scale=1}\n");
}

struct WindowForm {
  bool bias = true;  // one for all windows comes first
  SymbolicShape mask = {1, 3, 1, 5, 5};
  std::vector<int64_t> split = {-1, 3, 2, 5, 5};
};

// Two heads of three windows of five pixels, as Swin has them.
ModelBuilder windows(const WindowForm& form) {
  ModelBuilder b;
  b.initializer("sizes", Tensor({4}, {int64_t{-1}, int64_t{2}, int64_t{5}, int64_t{8}}));
  for (const std::string name : {"q", "k", "v"}) {
    b.input(name + ".image", ElementType::float32, SymbolicShape{batch, 3, 2, 5, 8});
    b.node("Reshape", {name + ".image", "sizes"}, {name});
  }
  b.input("bias", ElementType::float32, SymbolicShape{1, 2, 5, 5});
  b.input("mask", ElementType::float32, form.mask);
  b.initializer("split", Tensor({5}, std::span<const int64_t>(form.split)));
  b.initializer("joined", Tensor({4}, {int64_t{-1}, int64_t{2}, int64_t{5}, int64_t{5}}));
  add_transpose(b, "k", "kt", {0, 1, 3, 2});
  b.node("MatMul", {"q", "kt"}, {"product"});
  if (form.bias) b.node("Add", {"product", "bias"}, {"biased"});
  b.node("Reshape", {form.bias ? "biased" : "product", "split"}, {"windows"});
  b.node("Add", {"windows", "mask"}, {"masked"});
  b.node("Reshape", {"masked", "joined"}, {"scores"});
  add_weights(b, "scores", "v");
  return b;
}

TEST(Attention, OfWindowsWithAMaskEach) {
  for (bool bias : {false, true}) {
    ModelBuilder b = windows({.bias = bias});
    EXPECT_LT(change_by_extended(b), 1e-5);
    const std::string text = optimized(b, {"attention"});
    EXPECT_NE(text.find(" = Attention("), std::string::npos) << text;
    EXPECT_EQ(text.find("Softmax"), std::string::npos) << text;
  }
  for (const WindowForm& form : {WindowForm{.mask = {batch, 3, 1, 5, 5}}, WindowForm{.mask = {2, 1, 3, 2, 5, 5}},
                                 WindowForm{.split = {-1, 3, 2, 5, 1}}, WindowForm{.split = {3, -1, 2, 5, 5}}}) {
    ModelBuilder b = windows(form);
    optimized(b, {"attention"});
    EXPECT_TRUE(last_rewrites().empty());
  }
}

TEST(Attention, NotWhenSomethingElseIsMeant) {
  auto unchanged = [](ModelBuilder& b, const Strings& keep = {}) {
    optimized(b, {"attention"}, keep);
    return last_rewrites().empty();
  };
  auto plain = [](int64_t axis, SymbolicShape mask) {
    ModelBuilder b = heads();
    b.input("mask", ElementType::float32, std::move(mask));
    add_transpose(b, "k", "kt", {0, 1, 3, 2});
    b.node("MatMul", {"q", "kt"}, {"product"});
    b.node("Add", {"product", "mask"}, {"scores"});
    b.node("Softmax", {"scores"}, {"weights"}).set_attribute({"axis", axis});
    b.node("MatMul", {"weights", "v"}, {"y"});
    b.output("y");
    return b;
  };
  ModelBuilder fits = plain(-1, {queries, keys}), axis = plain(2, {queries, keys}), kept = plain(-1, {queries, keys}),
               used = plain(-1, {queries, keys}), grows = plain(-1, {2, 1, 1, queries, keys}),
               other = plain(-1, {Dim::symbol("other"), 1, queries, keys});
  EXPECT_FALSE(unchanged(fits));
  EXPECT_TRUE(unchanged(axis));
  EXPECT_TRUE(unchanged(kept, {"weights"}));
  used.output("scores");
  EXPECT_TRUE(unchanged(used));
  EXPECT_TRUE(unchanged(grows));
  EXPECT_TRUE(unchanged(other));

  struct Cleared {
    const char* number;
    int64_t axis;
    const char* scores;
  };
  // Rows whose largest score is another number, is of another axis, or of others than those that are weighted.
  for (const auto& [number, axis_of_largest, scores] :
       {Cleared{"zero", -1, "product"}, Cleared{"hidden", 2, "product"}, Cleared{"hidden", -1, "masked"}}) {
    ModelBuilder b = heads();
    b.input("mask", ElementType::float32, SymbolicShape{queries, keys});
    b.initializer("axis", Tensor({1}, {axis_of_largest}));
    add_transpose(b, "k", "kt", {0, 1, 3, 2});
    b.node("MatMul", {"q", "kt"}, {"product"});
    b.node("Softmax", {"product"}, {"softmax"});
    if (scores == std::string("masked")) b.node("Add", {"product", "mask"}, {"masked"});
    b.node("ReduceMax", {scores, "axis"}, {"largest"});
    b.node("Equal", {"largest", number}, {"nothing"});
    b.node("Where", {"nothing", "zero", "softmax"}, {"weights"});
    b.node("MatMul", {"weights", "v"}, {"y"});
    b.output("y");
    EXPECT_TRUE(unchanged(b));
  }

  ModelBuilder shared;  // the keys of one batch for all queries
  shared.input("q", ElementType::float32, SymbolicShape{batch, 4, queries, 8});
  shared.input("k", ElementType::float32, SymbolicShape{1, 4, keys, 8});
  shared.input("v", ElementType::float32, SymbolicShape{1, 4, keys, 8});
  add_transpose(shared, "k", "kt", {0, 1, 3, 2});
  shared.node("MatMul", {"q", "kt"}, {"product"});
  add_weights(shared, "product", "v");
  EXPECT_TRUE(unchanged(shared));
}

}  // namespace
}  // namespace tenon
