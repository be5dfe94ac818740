#include "passes/fit_opset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model_builder.h"
#include "passes/infer.h"
#include "passes/lower.h"

namespace tenon {
namespace {

std::vector<std::string> operators_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes()) names.push_back(node.op_type);
  return names;
}

bool has(const ir::Graph& graph, const char* op) { return std::ranges::count(operators_of(graph), op) > 0; }

std::vector<passes::Blocker> fit(ModelBuilder& b, int64_t opset) {
  passes::infer_types(b.graph());
  ir::OpsetImports imports;
  imports.add("", opset);
  return passes::fit_opsets(b.graph(), imports, [](const ir::Node&) { return false; }, {});
}

TEST(FitOpset, WhatTheOpsetHasStays) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 3});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  EXPECT_TRUE(fit(b, 13).empty());
  EXPECT_EQ(operators_of(b.graph()), std::vector<std::string>{"Relu"});
}

TEST(FitOpset, NewerOperatorsAreDecomposed) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 3});
  b.node("Mish", {"x"}, {"y"});
  b.output("y");
  EXPECT_TRUE(fit(b, 13).empty());
  EXPECT_FALSE(has(b.graph(), "Mish"));
  EXPECT_TRUE(has(b.graph(), "Tanh"));
}

// Axes that are an input of the model.
TEST(FitOpset, ComputedAxesAreReducedByShape) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 3});
  b.input("axes", ElementType::int64, SymbolicShape{1});
  b.node("ReduceMax", {"x", "axes"}, {"y"});
  b.output("y");
  EXPECT_TRUE(fit(b, 17).empty());
  const auto reduce = std::ranges::find(b.graph().nodes(), "ReduceMax", &ir::Node::op_type);
  ASSERT_NE(reduce, b.graph().nodes().end());
  EXPECT_TRUE(reduce->input(1)->is_fixed());
}

TEST(FitOpset, TypesThatAVersionDoesNotTakeAreCast) {
  ModelBuilder b;
  b.input("a", ElementType::int8, SymbolicShape{2}).input("b", ElementType::int8, SymbolicShape{2});
  b.node("Add", {"a", "b"}, {"y"});
  b.output("y");
  EXPECT_TRUE(fit(b, 14).empty());
  EXPECT_EQ(operators_of(b.graph()), std::vector<std::string>{"Add"});
  EXPECT_TRUE(fit(b, 13).empty());
  EXPECT_EQ(operators_of(b.graph()), (std::vector<std::string>{"Cast", "Cast", "Add", "Cast"}));
  EXPECT_EQ(b.graph().outputs()[0]->type.element, ElementType::int8);
}

TEST(FitOpset, BlockersSayWhatIsInTheWay) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2, 8, 2});
  b.input("z", ElementType::bfloat16, SymbolicShape{2});
  b.node("DFT", {"x"}, {"y"});
  b.node("Identity", {"z"}, {"w"});
  b.output("y").output("w");
  const std::vector<passes::Blocker> blockers = fit(b, 12);
  ASSERT_EQ(blockers.size(), 2u);
  EXPECT_EQ(blockers[0].op_type, "DFT");
  EXPECT_EQ(blockers[0].reason, "DFT came with opset 17, and older operators cannot express it");
  EXPECT_EQ(blockers[1].reason, "Identity has no expression in opset 12: opset 12 does not have the type bfloat16");
}

// The forms that are tried must not lead back to each other.
TEST(FitOpset, EndsWhereNothingFits) {
  ModelBuilder b;
  b.input("x", ElementType::bfloat16, SymbolicShape{2, 3});
  b.input("axes", ElementType::int64, SymbolicShape{1});
  b.node("ReduceMax", {"x", "axes"}, {"y"});
  b.output("y");
  const std::vector<passes::Blocker> blockers = fit(b, 12);
  ASSERT_FALSE(blockers.empty());
  for (const passes::Blocker& blocker : blockers)
    EXPECT_NE(blocker.reason.find("does not have the type bfloat16"), std::string::npos) << blocker.reason;
}

}  // namespace
}  // namespace tenon
