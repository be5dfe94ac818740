#include <gtest/gtest.h>

#include "pass_test.h"

namespace tenon {
namespace {

// Concats along axis 1, or another, of x, y and z.
ModelBuilder concats(const std::vector<std::vector<std::string>>& lists, const std::vector<int64_t>& axes) {
  ModelBuilder b;
  for (const char* name : {"x", "y", "z"})
    b.input(name, ElementType::float32, SymbolicShape{Dim::symbol("batch"), 3, 4});
  for (size_t i = 0; i < lists.size(); ++i) {
    const std::string name = "c" + std::to_string(i);
    b.node("Concat", lists[i], {name}).set_attribute({"axis", axes[i]});
    b.output(name);
  }
  return b;
}

const std::vector<std::string> passes = {"grow-concat"};

TEST(GrowConcat, BeginsWithAnother) {
  ModelBuilder b = concats({{"x", "y"}, {"x", "y", "z"}, {"x", "y", "z", "z", "x"}}, {1, -2, 1});
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_EQ(optimized(b, passes),
            "c0 = Concat(x, y) {axis=1}\n"
            "c1 = Concat(c0, z) {axis=-2}\n"
            "c2 = Concat(c1, z, x) {axis=1}\n");
}

TEST(GrowConcat, NotOtherwise) {
  const auto unchanged = [](ModelBuilder b) {
    optimized(b, passes);
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(concats({{"x", "y"}, {"x", "z", "y"}}, {1, 1}))) << "other parts";
  EXPECT_TRUE(unchanged(concats({{"x", "y"}, {"x", "y", "z"}}, {1, 2}))) << "another axis";
  EXPECT_TRUE(unchanged(concats({{"x"}, {"x", "y"}}, {1, 1}))) << "one part is no beginning";
  EXPECT_TRUE(unchanged(concats({{"x", "y", "z"}, {"x", "y"}}, {1, 1}))) << "the smaller one comes later";
}

TEST(MergeConcat, TakesThePartsOfAnother) {
  ModelBuilder b = concats({{"x", "y"}, {"z", "c0", "x"}}, {1, -2});
  b.graph().remove_output(0);
  EXPECT_EQ(change_by_extended(b), 0);
  EXPECT_EQ(optimized(b, {"merge-concat"}), "c1 = Concat(z, x, y, x) {axis=-2}\n");
}

TEST(MergeConcat, NotOtherwise) {
  const auto unchanged = [](ModelBuilder b) {
    optimized(b, {"merge-concat"});
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(concats({{"x", "y"}, {"z", "c0", "x"}}, {1, 1}))) << "it is an output";
  ModelBuilder b = concats({{"x", "y"}, {"y", "x"}, {"c0", "c1"}}, {1, 1, 2});
  b.graph().remove_output(0);
  b.graph().remove_output(0);
  EXPECT_TRUE(unchanged(std::move(b))) << "another axis";
}

// A model that splits x in two along an axis and joins these names along axis 1.
ModelBuilder split(const std::vector<std::string>& joined, int64_t axis = 1) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 6, 6});
  ir::Node& node = b.node("Split", {"x"}, {"left", "right"});
  node.set_attribute({"axis", axis});
  node.set_attribute({"num_outputs", int64_t{2}});
  b.node("Relu", {"right"}, {"r"});
  b.node("Concat", joined, {"y"}).set_attribute({"axis", int64_t{-2}});
  b.output("y");
  return b;
}

TEST(JoinSplits, TakesWhatWasSplit) {
  ModelBuilder b = split({"r", "left", "right", "r"});
  EXPECT_EQ(change_by_extended(b), 0);
  const std::string text = optimized(b, {"join-splits"});
  EXPECT_NE(text.find("y = Concat(r, x, r) {axis=-2}"), std::string::npos) << text;
  ModelBuilder only = split({"left", "right"});
  EXPECT_NE(optimized(only, {"join-splits"}).find("y = Concat(x) {axis=-2}"), std::string::npos);
}

TEST(JoinSplits, NotOtherwise) {
  const auto unchanged = [](ModelBuilder b) {
    optimized(b, {"join-splits"});
    return last_rewrites().empty();
  };
  EXPECT_TRUE(unchanged(split({"right", "left"}))) << "another order";
  EXPECT_TRUE(unchanged(split({"left", "r", "right"}))) << "something between";
  EXPECT_TRUE(unchanged(split({"r", "left"}))) << "a part";
  EXPECT_TRUE(unchanged(split({"left", "right"}, 2))) << "another axis";
}

}  // namespace
}  // namespace tenon
