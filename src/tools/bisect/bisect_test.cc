#include "tenon/tools/bisect.h"

#include <gtest/gtest.h>

#include <set>

#include "model_builder.h"
#include "passes/match.h"
#include "passes/optimizer.h"
#include "tenon/tools/reduce.h"
#include "tools/bisect/smallest_set.h"

namespace tenon::tools {
namespace {

OnnxModel made(const ModelBuilder& b) {
  const std::string bytes = b.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

// Layers of Identity, Mul and Relu, so that there is much to rewrite.
OnnxModel layers(int count) {
  ModelBuilder b;
  b.input("x0", ElementType::float32, SymbolicShape{8});
  b.initializer("half", Tensor::scalar(0.5f));
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), next = "x" + std::to_string(i + 1);
    b.node("Identity", {"x" + n}, {"a" + n}, "identity " + n);
    b.node("Mul", {"a" + n, "half"}, {"b" + n}, "mul " + n);
    b.node("Sigmoid", {"b" + n}, {next}, "sigmoid " + n);
  }
  b.output("x" + std::to_string(count));
  return made(b);
}

// Takes the Mul out of one layer, which is wrong.
void forget_mul(passes::Editor& editor, ir::Node& node) {
  if (node.op_type != "Sigmoid" || node.name != "sigmoid 18") return;
  ir::Node* mul = node.input(0)->producer();
  if (!mul || mul->op_type != "Mul") return;
  editor.rewrite(node,
                 [&](passes::Patch& patch) { patch.replace(node, *patch.add_like(node, {mul->input(0)}).output(0)); });
}

TEST(Bisect, NamesTheWrongRewrite) {
  const passes::ExtraPass wrong("forget-mul", forget_mul);
  BisectOptions options;
  const RewriteBisection found = bisect_rewrites(layers(20), options);
  ASSERT_EQ(found.outcome, RewriteBisection::Outcome::found);
  EXPECT_EQ(found.rewrite.pass, "forget-mul");
  EXPECT_EQ(found.rewrite.after, std::vector<std::string>{"Sigmoid 'sigmoid 18'"});
  EXPECT_TRUE(found.before.within);
  EXPECT_FALSE(found.after.within);
  EXPECT_TRUE(found.without_pass.within);
  EXPECT_GE(found.rewrites, 20);
  EXPECT_LE(found.runs, 3 + 8) << "halving takes about log2 of all rewrites";
}

TEST(Bisect, SaysWhenThereIsNothingToFind) {
  const RewriteBisection found = bisect_rewrites(layers(3), {});
  EXPECT_EQ(found.outcome, RewriteBisection::Outcome::holds);
  EXPECT_TRUE(found.after.within);
}

TEST(Bisect, FindsNodesThatMustStayFloat) {
  // 300 squared is more than float16 has.
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{4});
  b.initializer("large", Tensor::scalar(300.0f)).initializer("small", Tensor::scalar(1e-5f));
  b.node("Add", {"x", "large"}, {"a"}, "add");
  b.node("Mul", {"a", "a"}, {"squares"}, "square");
  b.node("Mul", {"squares", "small"}, {"c"}, "shrink");
  b.node("Relu", {"c"}, {"d"}, "relu");
  b.node("Neg", {"d"}, {"y"}, "neg");
  b.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{4}));
  BisectOptions options;
  options.limit.tolerance = {1e-2, 1e-3};
  const NodeBisection found = bisect_dtype(made(b), ElementType::float16, options);
  ASSERT_EQ(found.outcome, NodeBisection::Outcome::found);
  EXPECT_EQ(std::set<std::string>(found.keep.begin(), found.keep.end()), (std::set<std::string>{"square", "shrink"}));
  EXPECT_TRUE(found.after.within);
  EXPECT_FALSE(found.before.within);
}

// What Add makes is quantized so coarsely that Mul is of no use.
TEST(Bisect, FindsQuantizedNodesThatMustStayFloat) {
  ModelBuilder original;
  original.input("x", ElementType::float32, SymbolicShape{4});
  original.initializer("b", Tensor::scalar(0.25f)).initializer("w", Tensor::scalar(0.75f));
  original.node("Add", {"x", "b"}, {"a"}, "add");
  original.node("Mul", {"a", "w"}, {"m"}, "mul");
  original.node("Neg", {"m"}, {"y"}, "neg");
  original.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{4}));

  ModelBuilder quantized;
  quantized.input("x", ElementType::float32, SymbolicShape{4});
  quantized.initializer("b", Tensor::scalar(0.25f)).initializer("w_int8", Tensor::scalar(int8_t{1}));
  quantized.initializer("zero", Tensor::scalar(int8_t{0}));
  quantized.initializer("coarse", Tensor::scalar(1.0f)).initializer("fine", Tensor::scalar(0.01f));
  const auto through = [&](const std::string& value, const std::string& scale) {
    quantized.node("QuantizeLinear", {value, scale, "zero"}, {value + "_q"});
    quantized.node("DequantizeLinear", {value + "_q", scale, "zero"}, {value + "_dq"});
  };
  through("x", "fine");
  quantized.node("Add", {"x_dq", "b"}, {"a"}, "add");
  through("a", "coarse");
  quantized.node("DequantizeLinear", {"w_int8", "coarse", "zero"}, {"w_dq"});
  quantized.node("Mul", {"a_dq", "w_dq"}, {"m"}, "mul");
  through("m", "fine");
  quantized.node("Neg", {"m_dq"}, {"y"}, "neg");
  quantized.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{4}));

  BisectOptions options;
  options.limit.tolerance = {0.02, 0.02};
  const NodeBisection found = bisect_quantization(made(original), made(quantized), options);
  ASSERT_EQ(found.outcome, NodeBisection::Outcome::found);
  EXPECT_EQ(found.keep, std::vector<std::string>{"mul"});
  EXPECT_EQ(found.candidates.size(), 3u);
  EXPECT_TRUE(found.after.within);
  ASSERT_TRUE(found.model);
  const ir::Graph& graph = *found.model->ir().graph;
  const auto mul = std::ranges::find(graph.nodes(), "mul", &ir::Node::name);
  ASSERT_NE(mul, graph.nodes().end());
  EXPECT_EQ(mul->input(0)->name, "a");
  EXPECT_EQ(mul->input(1)->constant()->tensor.data<float>()[0], 0.75f);
  EXPECT_EQ(graph.nodes().size(), 7u) << "what dequantized a and w for nobody is gone";

  EXPECT_THROW(bisect_quantization(made(original), made(original), options), Error);
}

TEST(SmallestSet, NeedsFewTrialsForOne) {
  for (size_t wanted : {size_t{0}, size_t{63}, size_t{99}}) {
    int calls = 0;
    const auto holds = [&](const std::vector<size_t>& set) {
      ++calls;
      return std::ranges::find(set, wanted) != set.end();
    };
    EXPECT_EQ(smallest_set(100, holds), std::vector<size_t>{wanted});
    EXPECT_LE(calls, 16 + static_cast<int>(wanted > 0) * 16);
  }
}

TEST(SmallestSet, FindsSeveralThatAreApart) {
  const std::set<size_t> wanted = {3, 40, 41, 77};
  const auto holds = [&](const std::vector<size_t>& set) {
    const std::set<size_t> has(set.begin(), set.end());
    return std::ranges::includes(has, wanted);
  };
  EXPECT_EQ(smallest_set(100, holds), (std::vector<size_t>{3, 40, 41, 77}));
}

TEST(Reduce, LeavesWhatMatters) {
  ReduceOptions options;
  // A model fails if it has a Mul whose result goes to a Sigmoid of this name.
  options.shows = [](const OnnxModel& model, const NamedValues& inputs) {
    EXPECT_NO_THROW(model.open().run(inputs));
    for (const ir::Node& node : model.ir().graph->nodes()) {
      const ir::Node* maker = node.name == "sigmoid 7" ? node.input(0)->producer() : nullptr;
      if (maker && maker->op_type == "Mul") return true;
    }
    return false;
  };
  const ReducedModel reduced = reduce(layers(20), options);
  EXPECT_EQ(reduced.nodes_before, 60);
  EXPECT_EQ(reduced.nodes_after, 2);
  ASSERT_EQ(reduced.inputs.size(), 1u);
  EXPECT_EQ(reduced.inputs.begin()->first, "a7");
}

TEST(Reduce, RefusesWhatShowsNothing) {
  ReduceOptions options;
  options.shows = [](const OnnxModel&, const NamedValues&) { return false; };
  EXPECT_THROW(reduce(layers(2), options), Error);
}

}  // namespace
}  // namespace tenon::tools
