#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/verify.h"
#include "model_builder.h"

namespace tenon {
namespace {

ModelBuilder chain() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Relu", {"x"}, {"a"}, "first");
  b.node("Add", {"a", "x"}, {"y"}, "second");
  b.output("y");
  return b;
}

TEST(Graph, KeepsTrackOfUses) {
  ModelBuilder b = chain();
  ir::Graph& graph = b.graph();
  ir::Value &x = b.value("x"), &a = b.value("a");
  EXPECT_EQ(x.users().size(), 2u);
  EXPECT_EQ(a.producer()->name, "first");
  graph.replace_uses(a, x);
  EXPECT_TRUE(a.users().empty());
  EXPECT_EQ(x.users().size(), 3u);
  graph.remove_node(*a.producer());
  EXPECT_EQ(ir::to_text(graph),
            "graph \"test\" (x: tensor(float) [n]) -> (y: ?)\n"
            "  y = Add(x, x)  # second\n");
}

// A model that was written with such names is read again.
TEST(Graph, FreshNamesDifferFromThoseOfTheFile) {
  ModelBuilder b;
  b.initializer("axes/tenon_3", Tensor::scalar(1.0f)).initializer("y/tenon_99999999999999999999", Tensor::scalar(1.0f));
  EXPECT_EQ(b.graph().add_constant(Tensor::scalar(2.0f), "axes").name, "axes/tenon_4");
  EXPECT_EQ(b.graph().add_constant(Tensor::scalar(2.0f), "y").name, "y/tenon_5");
}

TEST(Graph, SortsAndKeepsTheOrderOfSortedOnes) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.node("Relu", {"b"}, {"c"}, "third");
  b.node("Relu", {"x"}, {"a"}, "first");
  b.node("Relu", {"a"}, {"b"}, "second");
  b.output("c");
  ir::verify_and_sort(b.graph());
  std::vector<std::string> names;
  for (const ir::Node& node : b.graph().nodes()) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third"}));
}

TEST(Graph, CopiesAreIndependent) {
  ModelBuilder b = chain();
  auto body = std::make_unique<ir::Graph>();
  ir::Node& inner = body->add_node("Neg");
  inner.set_input(0, &b.value("a"));
  ir::Value& result = body->add_value("r");
  inner.add_output(&result);
  body->add_output(result);
  b.graph().nodes().back().set_attribute(ir::Attribute("body", std::move(body)));
  std::string before = ir::to_text(b.graph());
  auto copy = b.graph().clone();
  EXPECT_EQ(ir::to_text(*copy), before);
  // The copy's subgraph reads the copy's value.
  const ir::Graph* copied_body = copy->nodes().back().graph_attribute("body");
  EXPECT_EQ(&copied_body->nodes().front().input(0)->graph(), copy.get());
  copy->nodes().front().op_type = "Tanh";
  EXPECT_EQ(ir::to_text(b.graph()), before);
}

TEST(Opsets, TwoNamesOfOneDomain) {
  ir::OpsetImports imports;
  imports.add("ai.onnx", 17);
  EXPECT_EQ(imports.version(""), 17);
  imports.set("", 18);
  EXPECT_EQ(imports.entries().size(), 1u);
  EXPECT_EQ(imports.version("other"), 0);
}

TEST(Graph, ASubgraphThatGoesLeavesNoUses) {
  ModelBuilder b = chain();
  ir::Value& x = b.value("a");
  const size_t uses = x.users().size();
  ir::Node& node = b.node("If", {}, {"unused"});
  auto branch = std::make_unique<ir::Graph>();
  ir::Node& inner = branch->add_node("Neg");
  inner.add_input(&x);
  inner.add_output(&branch->add_value("z"));
  node.set_attribute(ir::Attribute("then_branch", std::move(branch)));
  ASSERT_EQ(x.users().size(), uses + 1);
  b.graph().remove_node(node);
  EXPECT_EQ(x.users().size(), uses);
}

}  // namespace
}  // namespace tenon
