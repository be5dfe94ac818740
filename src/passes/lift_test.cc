#include "passes/lift.h"

#include <gtest/gtest.h>

#include <set>

#include "model_builder.h"

namespace tenon {
namespace {

std::vector<std::string> names_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Value& value : graph.values()) names.push_back(value.name);
  return names;
}

TEST(LiftToOpset, LeavesLaterChangesForLater) {
  ModelBuilder b(1);
  b.input("x", ElementType::float32, SymbolicShape{2, 3});
  ir::Node& clip = b.node("Clip", {"x"}, {"c"});
  clip.set_attribute({"min", 0.0f});
  clip.set_attribute({"consumed_inputs", std::vector<int64_t>{0}});
  ir::Node& softmax = b.node("Softmax", {"c"}, {"y"});
  b.output("y");
  ir::Model& model = b.model();

  passes::lift_to_opsets(model, {{"", 10}});
  EXPECT_EQ(model.opset_imports.version(""), 10);
  EXPECT_TRUE(clip.attribute("min"));
  EXPECT_EQ(b.graph().nodes().size(), 2u);

  passes::lift_to_opsets(model, {{"", 11}});
  EXPECT_FALSE(clip.attribute("min"));
  EXPECT_TRUE(clip.input(1));
  EXPECT_FALSE(softmax.attribute("axis"));

  passes::lift_to_opsets(model, {{"", 13}});
  EXPECT_TRUE(softmax.attribute("axis") || softmax.op_type == "Reshape");
  EXPECT_EQ(model.opset_imports.version(""), 13);

  passes::lift_to_opsets(model, {{"", 12}});
  EXPECT_EQ(model.opset_imports.version(""), 13);
}

// Names that passes make start over when a model is read again.
TEST(LiftToOpset, NamesStayUnique) {
  ModelBuilder b(1);
  b.input("x", ElementType::float32, SymbolicShape{2, 3});
  b.node("Clip", {"x"}, {"a"}).set_attribute({"min", 0.0f});
  b.node("ReduceSum", {"a"}, {"y"}).set_attribute({"axes", std::vector<int64_t>{1}});
  b.initializer("min/tenon_0", Tensor::scalar(1.0f)).initializer("axes/tenon_1", Tensor::scalar(1.0f));
  b.output("y");
  passes::lift_to_opsets(b.model(), {{"", ops::newest_opset}});
  std::vector<std::string> names = names_of(b.graph());
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(b.graph().inputs()[0]->name, "x");
  EXPECT_EQ(b.graph().outputs()[0]->name, "y");
  EXPECT_EQ(b.graph().initializers().size(), 4u);
  for (const ir::Value* value : b.graph().initializers()) EXPECT_EQ(value->constant()->name, value->name);
}

// The axes of ReduceMax were an attribute in the opset of the function.
TEST(LiftToNewest, WhatBecomesAConstantInAFunctionIsInlined) {
  ModelBuilder b;
  b.model().opset_imports.add("mine", 1);
  auto function = std::make_unique<ir::Function>();
  function->domain = "mine";
  function->name = "Largest";
  function->opset_imports.add("", 17);
  function->body = std::make_unique<ir::Graph>();
  ir::Value &in = function->body->add_value("in"), &out = function->body->add_value("out");
  function->body->add_input(in);
  ir::Node& reduce = function->body->add_node("ReduceMax");
  reduce.set_attribute({"axes", std::vector<int64_t>{0}});
  reduce.set_attribute({"keepdims", int64_t{0}});
  reduce.add_input(&in);
  reduce.add_output(&out);
  function->body->add_output(out);
  b.model().functions.push_back(std::move(function));
  b.input("x", ElementType::float32, SymbolicShape{2, 2});
  b.node("Largest", {"x"}, {"y"}, "", "mine");
  b.output("y");
  const Value y = b.session().run({{"x", Tensor({2, 2}, {1.0f, 4.0f, 3.0f, 2.0f})}}).at("y");
  EXPECT_TRUE(std::ranges::equal(y.tensor().data<float>(), std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace tenon
