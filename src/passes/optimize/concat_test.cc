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

}  // namespace
}  // namespace tenon
