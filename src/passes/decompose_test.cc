#include "passes/decompose.h"

#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

SessionOptions decomposing(const std::string& op) {
  SessionOptions options;
  options.decompose = {op};
  return options;
}

std::vector<std::string> operators_of(const Session& session) {
  std::vector<std::string> result;
  for (const NodePlacement& node : session.placement()) result.push_back(node.op_type);
  return result;
}

ModelBuilder softmax_loss() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 3});
  b.input("classes", ElementType::int64, SymbolicShape{Dim::symbol("n")});
  b.node("SoftmaxCrossEntropyLoss", {"x", "classes"}, {"y"}, "loss");
  b.output("y");
  return b;
}

TEST(Decompose, OnlyWhatIsAskedFor) {
  std::vector<std::string> plain = operators_of(softmax_loss().session());
  EXPECT_EQ(plain, std::vector<std::string>{"SoftmaxCrossEntropyLoss"});
  std::vector<std::string> one = operators_of(softmax_loss().session(decomposing("SoftmaxCrossEntropyLoss")));
  EXPECT_EQ(std::ranges::count(one, "LogSoftmax"), 1);
  std::vector<std::string> all = operators_of(softmax_loss().session(decomposing("all")));
  EXPECT_EQ(std::ranges::count(all, "LogSoftmax"), 0);
  EXPECT_EQ(std::ranges::count(all, "ReduceMax"), 1);
}

TEST(Decompose, NodesKeepTheirOriginAndShapesAreInferred) {
  Session session = softmax_loss().session(decomposing("all"));
  for (const NodePlacement& node : session.placement())
    EXPECT_EQ(node.node, "SoftmaxCrossEntropyLoss 'loss' (node 0)") << node.op_type;
  EXPECT_TRUE(session.notes().empty());
  NamedValues y = session.run({{"x", Tensor({1, 3}, {0.0f, 0.0f, 0.0f})}, {"classes", Tensor({1}, {int64_t{2}})}});
  EXPECT_NEAR(y["y"].tensor().data<float>()[0], std::log(3.0f), 1e-6);
}

TEST(Decompose, ReachesSubgraphs) {
  ModelBuilder b;
  b.input("c", ElementType::boolean, SymbolicShape{}).input("x", ElementType::float32, SymbolicShape{2});
  ir::Node& node = b.node("If", {"c"}, {"y"}, "choose");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Value& result = graph->add_value(branch);
    ir::Node& inner = graph->add_node("Relu");
    inner.add_input(&b.value("x"));
    inner.add_output(&result);
    graph->add_output(result);
    node.set_attribute({branch, std::move(graph)});
  }
  b.output("y");
  std::vector<std::string> ops = operators_of(b.session(decomposing("Relu")));
  EXPECT_EQ(std::ranges::count(ops, "Relu"), 0);
  EXPECT_EQ(std::ranges::count(ops, "Max"), 2);
}

TEST(Decompose, NotesWhatStays) {
  ModelBuilder b;
  b.input("theta", ElementType::float32).input("size", ElementType::int64);
  b.node("AffineGrid", {"theta", "size"}, {"y"}, "grid");
  b.output("y");
  Session session = b.session(decomposing("AffineGrid"));
  EXPECT_EQ(session.notes(), std::vector<std::string>{"AffineGrid 'grid' (node 0): AffineGrid is not decomposed, the "
                                                      "number of spatial axes is not known"});
}

TEST(Decompose, RefusesNamesThatSayNothing) {
  EXPECT_EQ(error_of([] { softmax_loss().session(decomposing("Softmx")); }),
            "invalid-argument: decompose names 'Softmx', which is no operator with a decomposition\n"
            "  hint: did you mean 'Softmax'?");
}

}  // namespace
}  // namespace tenon
