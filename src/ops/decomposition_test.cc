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
    "BlackmanWindow",
    "CastLike",
    "Celu",
    "CenterCropPad",
    "Clip",
    "DepthToSpace",
    "DynamicQuantizeLinear",
    "Elu",
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

// Those that ONNX defines by other means.
const std::set<std::string> others = {"Gradient"};

TEST(Decomposition, EveryFunctionOperatorHasOne) {
  std::set<std::string> decomposed;
  for (const Operator* op : operators().all()) {
    if (op->decomposition && !others.count(op->name)) decomposed.insert(op->name);
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
  EXPECT_EQ(g.ops(), (std::vector<std::string>{"Cast", "Mul", "Sigmoid", "Mul", "Cast", "Identity"}));
  EXPECT_EQ(g.y.producer()->op_type, "Identity");
}

TEST(Decomposition, GivesUpWithAReasonAndChangesNothing) {
  Graph g;
  g.node.op_type = "Attention";
  g.node.add_input(&g.x);
  g.node.add_input(&g.x);
  EXPECT_EQ(decompose(g.node), "the rank of input 0 is not known");
  EXPECT_EQ(g.ops(), std::vector<std::string>{"Attention"});
  EXPECT_TRUE(g.graph.initializers().empty());
  g.node.op_type = "Conv";
  EXPECT_EQ(decompose(g.node), "it has no decomposition");
}

}  // namespace
}  // namespace tenon::ops
