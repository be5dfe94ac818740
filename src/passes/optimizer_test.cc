#include "passes/optimizer.h"

#include <gtest/gtest.h>

#include "ir/print.h"
#include "pass_test.h"

namespace tenon {
namespace {

TEST(Optimizer, LevelsHaveNames) {
  EXPECT_EQ(optimization_level("extended"), OptimizationLevel::extended);
  EXPECT_EQ(name_of(OptimizationLevel::exact), "exact");
  EXPECT_EQ(error_of([] { optimization_level("basik"); }),
            "invalid-argument: there is no optimisation level 'basik'\n  hint: did you mean 'basic'?");
  EXPECT_EQ(error_of([] { optimization_level("99"); }),
            "invalid-argument: there is no optimisation level '99'\n"
            "  hint: the levels are 'none', 'exact', 'basic', 'extended', 'all'");
}

TEST(Optimizer, RefusesPassesAndValuesThatDoNotExist) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  SessionOptions options;
  options.disabled_passes = {"ded-code"};
  EXPECT_EQ(error_of([&] { b.session(options); }),
            "invalid-argument: there is no optimiser pass 'ded-code' to disable\n  hint: did you mean 'dead-code'?");
  options.disabled_passes = {};
  options.keep = {"hiden"};
  EXPECT_EQ(error_of([&] { b.session(options); }),
            "unknown-name: 'hiden' is to be kept, but the model has no such value");
}

ModelBuilder identities() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.node("Identity", {"x"}, {"a"}, "first");
  b.node("Relu", {"a"}, {"b"}, "relu");
  b.node("Identity", {"b"}, {"y"}, "last");
  b.output("y");
  return b;
}

TEST(Optimizer, RecordsWhatItChanges) {
  ModelBuilder b = identities();
  EXPECT_EQ(optimized(b, {"identity"}), "y = Relu(x)\n");
  ASSERT_EQ(last_rewrites().size(), 2u);
  const Rewrite &first = last_rewrites()[0], &last = last_rewrites()[1];
  EXPECT_EQ(first.pass, "identity");
  EXPECT_EQ(first.before, std::vector<std::string>{"Identity 'first' (node 0)"});
  EXPECT_TRUE(first.after.empty());
  EXPECT_EQ(first.renamed, (std::vector<std::pair<std::string, std::string>>{{"a", "x"}}));
  EXPECT_EQ(last.renamed, (std::vector<std::pair<std::string, std::string>>{{"b", "y"}}));
}

TEST(Optimizer, KeepsValuesThatAreAskedFor) {
  ModelBuilder b = identities();
  EXPECT_EQ(optimized(b, {"identity"}, {"b"}), "b = Relu(x)\ny = Identity(b)\n");
  ModelBuilder c = identities();
  EXPECT_EQ(optimized(c, {"identity"}, {"a"}), "a = Identity(x)\ny = Relu(a)\n");
}

TEST(Optimizer, ReachesSubgraphsAndWhatTheyRead) {
  ModelBuilder b;
  b.input("c", ElementType::boolean, SymbolicShape{}).input("x", ElementType::float32, SymbolicShape{2});
  b.node("Identity", {"x"}, {"a"});
  ir::Node& node = b.node("If", {"c"}, {"y"}, "choose");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Value &copy = graph->add_value(std::string(branch) + "_copy"), &result = graph->add_value(branch);
    ir::Node& identity = graph->add_node("Identity");
    identity.add_input(&b.value("a"));
    identity.add_output(&copy);
    ir::Node& inner = graph->add_node("Relu");
    inner.add_input(&copy);
    inner.add_output(&result);
    graph->add_output(result);
    node.set_attribute({branch, std::move(graph)});
  }
  b.output("y");
  EXPECT_EQ(optimized(b, {"identity", "dead-code"}),
            "y = If(c)\n"
            "  then_branch:\n"
            "  graph \"\" () -> (then_branch: tensor(float) [2])\n"
            "    then_branch = Relu(x)\n"
            "  else_branch:\n"
            "  graph \"\" () -> (else_branch: tensor(float) [2])\n"
            "    else_branch = Relu(x)\n");
}

TEST(Optimizer, LeavesWhatContradictsItselfAndNeverRuns) {
  ModelBuilder b;
  b.input("c", ElementType::boolean, SymbolicShape{}).input("x", ElementType::float32, SymbolicShape{2, 3});
  ir::Node& node = b.node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Value &turned = graph->add_value("turned"), &result = graph->add_value("result");
    ir::Node& transpose = graph->add_node("Transpose");
    transpose.add_input(&b.value("x"));
    transpose.add_output(&turned);
    ir::Node& gemm = graph->add_node("Gemm");
    gemm.add_input(&turned);
    // [3, 2] times [2, 3] is fine, [3, 2] times [3, 2] is not.
    gemm.add_input(std::string(branch) == "then_branch" ? &b.value("x") : &turned);
    gemm.add_output(&result);
    graph->add_output(result);
    node.set_attribute({branch, std::move(graph)});
  }
  b.output("y");
  Session session = b.session();
  Tensor x({2, 3}, {1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f});
  NamedValues y = session.run({{"c", Tensor(Shape{}, {true})}, {"x", x}});
  EXPECT_EQ(y["y"].tensor().shape(), (Shape{3, 3}));
  EXPECT_EQ(optimized(b, {"gemm-transpose"}).find("Gemm(x, x) {transA=1, transB=0}") != std::string::npos, true);
}

TEST(Optimizer, ExactLeavesComputedWeightsComputed) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 2});
  b.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f}));
  b.node("Neg", {"w"}, {"a"});
  b.node("Identity", {"a"}, {"b"});
  b.node("MatMul", {"x", "b"}, {"y"});
  b.output("y");
  auto operators = [&](OptimizationLevel level) {
    SessionOptions options;
    options.level = level;
    std::string list;
    Session session = b.session(options);
    for (const NodePlacement& node : session.placement()) list += node.op_type + " ";
    return list;
  };
  EXPECT_EQ(operators(OptimizationLevel::none), "Neg Identity MatMul ");
  EXPECT_EQ(operators(OptimizationLevel::exact), "Neg MatMul ");
  EXPECT_EQ(operators(OptimizationLevel::basic), "MatMul ");
}

TEST(Optimizer, ErrorsNameTheNodeOfTheModel) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 2});
  b.initializer("w", Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})).initializer("bias", Tensor({2}, {1.0f, 2.0f}));
  b.node("MatMul", {"x", "w"}, {"product"}, "dense");
  b.node("Add", {"bias", "product"}, {"y"}, "dense/bias");
  b.output("y");
  Session session = b.session();
  ASSERT_EQ(session.placement().size(), 1u);
  EXPECT_EQ(session.placement()[0].node, "MatMul 'dense' (node 0)");
  EXPECT_EQ(session.placement()[0].op_type, "Gemm");
  ASSERT_EQ(session.rewrites().size(), 1u);
  EXPECT_EQ(session.rewrites()[0].after, std::vector<std::string>{"Gemm 'dense'"});
}

}  // namespace
}  // namespace tenon
