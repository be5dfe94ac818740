#include "ops/type_history.h"

#include <gtest/gtest.h>

#include "ops/operator.h"
#include "ops/wider_types.h"

namespace tenon::ops {
namespace {

const Operator& find(const char* name) { return *operators().find(ai_onnx, name); }

TEST(TypeHistory, KnowsEachVersion) {
  const ir::Type bytes = ir::Type::tensor(ElementType::int8), floats = ir::Type::tensor(ElementType::float32);
  EXPECT_FALSE(allows_input(find("Add"), 13, 0, bytes));
  EXPECT_TRUE(allows_input(find("Add"), 14, 0, bytes));
  EXPECT_TRUE(allows_output(find("Add"), 7, 0, floats));
  EXPECT_FALSE(allows_output(find("Equal"), 7, 0, floats));
}

TEST(TypeHistory, TheLastOfManyStandsForAll) {
  const ir::Type longs = ir::Type::tensor(ElementType::int64);
  EXPECT_TRUE(allows_input(find("Concat"), 4, 5, longs));
  EXPECT_FALSE(allows_input(find("Concat"), 1, 5, longs));
}

TEST(TypeHistory, OtherKindsOfValue) {
  const ir::Type sequence = ir::Type::sequence(ir::Type::tensor(ElementType::float32));
  EXPECT_FALSE(allows_input(find("Identity"), 13, 0, sequence));
  EXPECT_TRUE(allows_input(find("Identity"), 14, 0, sequence));
}

TEST(TypeHistory, WhatIsNotKnownIsAllowed) {
  EXPECT_TRUE(allows_input(find("Add"), 7, 0, ir::Type()));
  EXPECT_TRUE(allows_input(find("Add"), 7, 0, ir::Type::tensor(ElementType::undefined)));
}

TEST(TypeHistory, VersionsOfOtherRuntimesAreNotOnnx) {
  EXPECT_FALSE(is_in_onnx(find("LayerNormalization"), 1));
  EXPECT_TRUE(is_in_onnx(find("LayerNormalization"), 17));
  EXPECT_FALSE(is_in_onnx(find("Upsample"), 10));
}

// Every operator of ai.onnx has its newest version in the list, or is one that was deprecated.
TEST(TypeHistory, HasEveryOperator) {
  for (const Operator* op : operators().all()) {
    if (!op->domain.empty() || op->name == "Upsample" || op->name == "Scatter") continue;
    EXPECT_TRUE(is_in_onnx(*op, op->newest_version())) << op->name;
  }
}

TEST(WiderTypes, HoldEveryElement) {
  EXPECT_EQ(wider_types(find("Transpose"), ElementType::int16)[0], ElementType::int32);
  EXPECT_TRUE(wider_types(find("Transpose"), ElementType::int64).empty());
  for (ElementType type : wider_types(find("Mul"), ElementType::int8)) EXPECT_TRUE(is_integer(type));
  EXPECT_TRUE(wider_types(find("Conv"), ElementType::int8).empty());
}

}  // namespace
}  // namespace tenon::ops
