#include "ops/decomposition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/operator.h"

namespace tenon::ops {
namespace {

// The operators that ONNX defines by a function of smaller ones.
const std::set<std::string> function_operators{
    "AffineGrid",
    "Attention",
    "Bernoulli",
    "BlackmanWindow",
    "CastLike",
    "CausalConvWithState",
    "Celu",
    "CenterCropPad",
    "Clip",
    "DepthToSpace",
    "DynamicQuantizeLinear",
    "Elu",
    "FlexAttention",
    "Gelu",
    "GreaterOrEqual",
    "GroupNormalization",
    "HammingWindow",
    "HannWindow",
    "HardSigmoid",
    "HardSwish",
    "LayerNormalization",
    "LeakyRelu",
    "LessOrEqual",
    "LinearAttention",
    "LogSoftmax",
    "MeanVarianceNormalization",
    "Mish",
    "NegativeLogLikelihoodLoss",
    "PRelu",
    "RMSNormalization",
    "Range",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
    "Relu",
    "RotaryEmbedding",
    "Selu",
    "SequenceMap",
    "Shrink",
    "Softmax",
    "SoftmaxCrossEntropyLoss",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "SwiGLU",
    "Swish",
    "ThresholdedRelu",
};

// Those that ONNX defines by other means, or not at all; all of com.microsoft are.
const std::set<std::string> others = {"BlockedConv",
                                      "BlockedConvMaxPool",
                                      "BlockedConvTranspose",
                                      "ChannelAffine",
                                      "ChannelsLastAveragePool",
                                      "ChannelsLastConv",
                                      "ChannelsLastMaxPool",
                                      "FromBlocked",
                                      "FusedConv",
                                      "FusedElementwise",
                                      "FusedMatMul",
                                      "Gradient",
                                      "LookUp",
                                      "PackedAttention",
                                      "QLinearConv",
                                      "QLinearMatMul",
                                      "SkipLayerNormalization",
                                      "SkipRMSNormalization",
                                      "ToBlocked"};

TEST(Decomposition, EveryFunctionOperatorHasOne) {
  std::set<std::string> decomposed;
  for (const Operator* op : operators().all()) {
    if (op->decomposition && op->domain != microsoft && !others.count(op->name)) decomposed.insert(op->name);
  }
  std::vector<std::string> missing, unlisted;
  std::ranges::set_difference(function_operators, decomposed, std::back_inserter(missing));
  std::ranges::set_difference(decomposed, function_operators, std::back_inserter(unlisted));
  EXPECT_EQ(missing, std::vector<std::string>{});
  EXPECT_EQ(unlisted, std::vector<std::string>{});
}

struct Graph {
  ir::Graph graph;
  ir::Value &x = graph.add_value("x"), &y = graph.add_value("y");
  ir::Node& node = graph.add_node("Swish");
  Graph() {
    graph.add_input(x);
    node.add_input(&x);
    node.add_output(&y);
    graph.add_output(y);
    x.type = y.type = ir::Type::tensor(ElementType::float16);
  }
  std::vector<std::string> ops() const {
    std::vector<std::string> result;
    for (const ir::Node& n : graph.nodes()) result.push_back(n.op_type);
    return result;
  }
};

TEST(Decomposition, TakesTheNodesPlace) {
  Graph g;
  EXPECT_EQ(decompose(g.node), "");
  EXPECT_EQ(g.ops(), (std::vector<std::string>{"Cast", "Mul", "Sigmoid", "Mul", "Cast"}));
  EXPECT_EQ(g.y.producer()->op_type, "Cast") << "its output stays";
}

TEST(Decomposition, GivesUpWithAReasonAndChangesNothing) {
  Graph g;
  g.node.op_type = "Attention";
  g.node.add_input(&g.x);
  g.node.add_input(&g.x);
  g.node.set_attribute({"left_window_size", int64_t{-2}});
  EXPECT_EQ(decompose(g.node), "a window size is less than -1");
  EXPECT_EQ(g.ops(), std::vector<std::string>{"Attention"});
  EXPECT_TRUE(g.graph.initializers().empty());
  g.node.op_type = "Conv";
  EXPECT_EQ(decompose(g.node), "it has no decomposition");
}

// A graph with one input, in which an If has a branch that reads `outer`.
std::unique_ptr<ir::Graph> reader(ir::Value& outer) {
  auto graph = std::make_unique<ir::Graph>(), branch = std::make_unique<ir::Graph>();
  graph->add_input(graph->add_value("scores"));
  branch->add_node("Relu").add_input(&outer);
  ir::Node& choice = graph->add_node("If");
  choice.set_attribute({"then_branch", std::move(branch)});
  ir::Value& result = graph->add_value("result");
  choice.add_output(&result);
  graph->add_output(result);
  return graph;
}

TEST(Decomposition, GraphsAreTakenBackToo) {
  Graph g;
  g.node.op_type = "FlexAttention";
  g.node.domain = "ai.onnx.preview";
  g.node.add_input(&g.x);
  g.node.add_input(&g.x);
  g.node.set_attribute({"score_mod", reader(g.x)});
  auto broken = std::make_unique<ir::Graph>();
  broken->name = "broken";
  g.node.set_attribute({"prob_mod", std::move(broken)});
  const std::vector<ir::Node*> users = g.x.users();
  EXPECT_EQ(users.size(), 4u);
  EXPECT_EQ(decompose(g.node), "graph 'broken' has 0 inputs instead of 1");
  EXPECT_EQ(g.ops(), std::vector<std::string>{"FlexAttention"});
  EXPECT_EQ(g.x.users(), users);
}

}  // namespace
}  // namespace tenon::ops
