#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch"), width = Dim::symbol("width");

struct Form {
  SymbolicShape x = {batch, 4, width, 2};
  std::vector<int64_t> grouped = {0, 2, -1};
  Shape factor = {4, 1, 1};
  bool scales = true;
};

ModelBuilder norm(const Form& form) {
  ModelBuilder b;
  b.input("x", ElementType::float32, form.x);
  b.initializer("grouped", Tensor({static_cast<int64_t>(form.grouped.size())}, std::span<const int64_t>(form.grouped)));
  b.initializer("one", Tensor({2}, {1.0f, 2.0f})).initializer("zero", Tensor({2}, {0.0f, 0.5f}));
  b.initializer("factor", Tensor(form.factor, {1.0f, -2.0f, 3.0f, 4.0f}));
  b.initializer("addend", Tensor({4, 1, 1}, {0.5f, 0.25f, -1.0f, 2.0f}));
  b.node("Reshape", {"x", "grouped"}, {"groups"});
  b.node("InstanceNormalization", {"groups", "one", "zero"}, {"normalized"}).set_attribute({"epsilon", 1e-3f});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Reshape", {"normalized", "shape"}, {"back"});
  if (form.scales) {
    b.node("Mul", {"back", "factor"}, {"scaled"});
    b.node("Add", {"addend", "scaled"}, {"y"});
  }
  b.output(form.scales ? "y" : "back");
  return b;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_of('\n', text.size() - 2);
  return text.substr(end + 1, text.size() - end - 2);
}

const std::vector<std::string> passes = {"group-norm", "fold-constants", "dead-code"};

TEST(GroupNorm, WithScaleAndBias) {
  for (const Shape& factor : {Shape{4, 1, 1}, Shape{1, 4, 1, 1}}) {
    ModelBuilder b = norm({.factor = factor});
    EXPECT_LT(change_by_extended(b), 1e-5);
    const std::string text = optimized(b, passes);
    EXPECT_EQ(last_line(text).substr(0, 25), "y = GroupNormalization(x,") << text;
    EXPECT_EQ(text.substr(text.size() - 31), " {num_groups=2, epsilon=0.001}\n") << text;
  }
}

TEST(GroupNorm, WithoutThem) {
  ModelBuilder b = norm({.scales = false});
  EXPECT_LT(change_by_extended(b), 1e-5);
  EXPECT_EQ(last_line(optimized(b, passes)).substr(0, 28), "back = GroupNormalization(x,");
}

TEST(GroupNorm, NotOfOtherGroupsOrUsedValues) {
  auto unchanged = [](ModelBuilder b, const std::vector<std::string>& keep = {}) {
    optimized(b, {"group-norm"}, keep);
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(norm({.x = {batch, 3, width, 4}, .scales = false})));  // groups that cut through channels
  EXPECT_TRUE(unchanged(norm({.x = {batch, 4}, .scales = false})));
  EXPECT_TRUE(unchanged(norm({.x = {batch, 4, 2, 2}, .grouped = {-1, 2, 4}, .scales = false})));  // batch * 2 of them
  EXPECT_TRUE(unchanged(norm({}), {"normalized"}));
  ModelBuilder used = norm({});
  used.output("groups");
  EXPECT_TRUE(unchanged(std::move(used)));
}

// A factor that is not per channel stays.
TEST(GroupNorm, TakesNoFactorOfOtherAxes) {
  ModelBuilder b = norm({.x = {batch, 4, width, 4}, .factor = {1, 4}});
  const std::string text = optimized(b, passes);
  EXPECT_NE(text.find("back = GroupNormalization(x,"), std::string::npos) << text;
  EXPECT_EQ(last_line(text), "y = Add(addend, scaled)");
}

}  // namespace
}  // namespace tenon
