#include "tools/targets/facts.h"

#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon::tools {
namespace {

constexpr std::string_view table = R"(# A table.
# Source: made for a test.
domain ai.onnx
release 1.2.0 ai.onnx 11 ai.onnx.ml 2 ir 6
release 1.2.1 ai.onnx 12 ai.onnx.ml 2 ir 6
release 1.10.0 ai.onnx 15 ai.onnx.ml 2 ir 8
ran Add 7 T:0,1>0 1.2.0- float double
ran Add 7 T:0,1>0 1.2.1,1.10.0 int8
registered Concat 4 T:0+>0 1.2.0-1.2.1 float
never Odd 1
)";

TEST(TargetFacts, ReadsReleases) {
  const TargetFacts facts(table);
  EXPECT_EQ(facts.source(), "made for a test.");
  ASSERT_EQ(facts.releases().size(), 3u);
  EXPECT_EQ(facts.releases()[2].opset, 15);
  EXPECT_EQ(facts.releases()[2].ir_version, 8);
  EXPECT_EQ(facts.release("1.2"), 1u);
  EXPECT_EQ(facts.release("1.2.0"), 0u);
  EXPECT_EQ(facts.release("1"), 2u);
  EXPECT_EQ(facts.release("1.1"), std::nullopt);
  EXPECT_EQ(facts.release("new"), std::nullopt);
}

TEST(TargetFacts, ReadsSupport) {
  const TargetFacts facts(table);
  const std::span<const TypeSupport> add = facts.support("Add");
  ASSERT_EQ(add.size(), 2u);
  EXPECT_EQ(add[0].inputs, (std::vector<int>{0, 1}));
  EXPECT_EQ(add[0].outputs, (std::vector<int>{0}));
  EXPECT_EQ(add[0].releases, (std::vector<bool>{true, true, true}));
  EXPECT_TRUE(add[0].allows("double"));
  EXPECT_FALSE(add[0].allows("int8"));
  EXPECT_EQ(add[1].releases, (std::vector<bool>{false, true, true}));
  const std::span<const TypeSupport> concat = facts.support("Concat");
  ASSERT_EQ(concat.size(), 1u);
  EXPECT_TRUE(concat[0].inputs_repeat);
  EXPECT_FALSE(concat[0].outputs_repeat);
  EXPECT_EQ(concat[0].releases, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(facts.support("Odd").empty());
  EXPECT_TRUE(facts.covers(""));
  EXPECT_FALSE(facts.covers("com.microsoft"));
}

TEST(TargetFacts, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(error_of([] { TargetFacts("nonsense\n"); }), "");
  EXPECT_NE(error_of([] { TargetFacts("release 1.0\nran Add x T:0>0 1.0- float\n"); }), "");
  EXPECT_NE(error_of([] { TargetFacts("release 1.0\nran Add 7 T:0>0 2.0- float\n"); }), "");
}

// Every table that the library has can be read, and says where it comes from.
TEST(TargetFacts, TablesOfTheLibrary) {
  ASSERT_FALSE(target_files().empty());
  for (const TargetFile& file : target_files()) {
    const TargetFacts* facts = TargetFacts::find(file.name);
    ASSERT_NE(facts, nullptr) << file.name;
    EXPECT_FALSE(facts->source().empty()) << file.name;
    EXPECT_FALSE(facts->releases().empty()) << file.name;
  }
  EXPECT_EQ(TargetFacts::find("nowhere"), nullptr);
}

}  // namespace
}  // namespace tenon::tools
