#include <gtest/gtest.h>

#include <cmath>

#include "pass_test.h"

namespace tenon {
namespace {

constexpr int64_t channels = 4;

// A model whose only output, y, adds up branches of x.
struct Branches : ModelBuilder {
  explicit Branches(int64_t inputs = channels) {
    input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), inputs, 9, 8});
  }

  struct Window {
    std::vector<int64_t> kernel, pads = {};
    int64_t stride = 1, dilation = 1, groups = 1;
  };

  // A convolution, with a bias where it is of one group.
  Branches&& conv(const std::string& name, Window w, int64_t inputs = channels) {
    initializer(name + "_w", numbers({channels, inputs / w.groups, w.kernel[0], w.kernel[1]}));
    if (w.groups == 1) initializer(name + "_b", numbers({channels}));
    std::vector<std::string> inputs_of{"x", name + "_w"};
    if (w.groups == 1) inputs_of.push_back(name + "_b");
    ir::Node& made = node("Conv", inputs_of, {name}, name);
    made.set_attribute({"group", w.groups});
    made.set_attribute({"strides", std::vector<int64_t>(2, w.stride)});
    made.set_attribute({"dilations", std::vector<int64_t>(2, w.dilation)});
    if (!w.pads.empty()) made.set_attribute({"pads", w.pads});
    return std::move(*this);
  }

  Branches&& norm(const std::string& name) {
    std::vector<std::string> inputs_of{"x"};
    for (const char* parameter : {"_scale", "_shift", "_mean", "_variance"}) {
      inputs_of.push_back(name + parameter);
      initializer(inputs_of.back(), numbers({channels}));
    }
    node("BatchNormalization", inputs_of, {name}, name);
    return std::move(*this);
  }

  Branches&& add(const std::string& a, const std::string& b, const std::string& sum) {
    node("Add", {a, b}, {sum}, sum);
    if (sum == "y") output("y");
    return std::move(*this);
  }

 private:
  // Between 0.25 and 1.75, none like the others.
  Tensor numbers(Shape shape) {
    Tensor result(ElementType::float32, std::move(shape));
    for (float& number : result.mutable_data<float>()) number = 1 + 0.75f * std::sin(next_++);
    return result;
  }
  float next_ = 0;
};

// The operators of the model with all that merges merged; also checks that the results are the same.
std::vector<std::string> operators_after(Branches model) {
  EXPECT_LT(change_by_extended(model), 1e-5);
  const std::string text = optimized(model, {"parallel-convs", "fold-constants", "dead-code"});
  std::vector<std::string> found;
  for (const char* op : {"Conv", "BatchNormalization", "Add"}) {
    for (size_t at = 0; (at = text.find(std::string(op) + "(", at)) != std::string::npos; ++at) found.emplace_back(op);
  }
  return found;
}

using Operators = std::vector<std::string>;
const std::vector<int64_t> around{1, 1, 1, 1};

TEST(ParallelConvs, BranchesOfOneImage) {
  const Branches::Window large{{3, 3}, around}, small{{1, 1}};
  EXPECT_EQ(operators_after(Branches().conv("a", large).conv("b", small).add("a", "b", "y")), Operators{"Conv"});
  EXPECT_EQ(operators_after(Branches().conv("a", small).conv("b", large).add("a", "b", "y")), Operators{"Conv"});
  EXPECT_EQ(operators_after(Branches().norm("a").conv("b", large).add("a", "b", "y")), Operators{"Conv"});
  Branches three = Branches().norm("a").conv("b", small).add("a", "b", "ab").conv("c", large).add("ab", "c", "y");
  EXPECT_EQ(operators_after(std::move(three)), Operators{"Conv"});
}

TEST(ParallelConvs, ThroughOtherTermsOfASum) {
  Branches residual =
      Branches().conv("a", {{3, 3}, around}).add("x", "a", "xa").conv("b", {{1, 1}}).add("b", "xa", "y");
  EXPECT_EQ(operators_after(std::move(residual)), (Operators{"Conv", "Add"}));
  Branches norm = Branches().conv("a", {{3, 3}, around}).add("x", "a", "xa").norm("b").add("b", "xa", "y");
  EXPECT_EQ(operators_after(std::move(norm)), (Operators{"Conv", "Add"}));
}

TEST(ParallelConvs, OfGroups) {
  const auto merged = [](int64_t a, int64_t b) {
    return operators_after(Branches()
                               .conv("a", {.kernel = {3, 3}, .pads = around, .groups = a})
                               .conv("b", {.kernel = {1, 1}, .groups = b})
                               .add("a", "b", "ab")
                               .norm("c")
                               .add("ab", "c", "y"));
  };
  for (auto [a, b] : {std::pair{1, 4}, {1, 2}, {2, 2}, {2, 4}, {4, 4}}) EXPECT_EQ(merged(a, b), Operators{"Conv"});
  // Of more channels than the large one reads. The normalization goes into either.
  EXPECT_EQ(merged(4, 1), (Operators{"Conv", "Conv", "Add"}));
  EXPECT_EQ(merged(4, 2), (Operators{"Conv", "Conv", "Add"}));
}

TEST(ParallelConvs, WindowsWithinWindows) {
  const auto merged = [](Branches::Window a, Branches::Window b) {
    return operators_after(Branches(8).conv("a", a, 8).conv("b", b, 8).add("a", "b", "y")) == Operators{"Conv"};
  };
  EXPECT_TRUE(merged({{5, 3}, {2, 1, 2, 1}}, {{1, 3}, {0, 1, 0, 1}}));
  EXPECT_TRUE(merged({.kernel = {3, 3}, .pads = around, .stride = 2}, {.kernel = {1, 1}, .stride = 2}));
  EXPECT_TRUE(merged({.kernel = {3, 3}, .pads = {2, 2, 2, 2}, .dilation = 2}, {{1, 1}}));
  EXPECT_TRUE(merged({{2, 2}, {1, 0, 0, 1}}, {{1, 1}}));
  EXPECT_TRUE(merged({{3, 3}, {0, 0, 2, 2}}, {{2, 2}, {0, 0, 1, 1}}));
  EXPECT_FALSE(merged({{1, 3}, {0, 1, 0, 1}}, {{3, 1}, {1, 0, 1, 0}})) << "neither is within the other";
  EXPECT_FALSE(merged({.kernel = {3, 3}, .pads = {2, 2, 2, 2}, .dilation = 2}, {{3, 3}, around}));
  EXPECT_FALSE(merged({.kernel = {3, 3}, .pads = {1, 1, 3, 3}, .dilation = 2}, {{1, 1}})) << "between two pixels";
  EXPECT_FALSE(merged({{2, 2}, {0, 0, 1, 1}}, {{2, 2}, {1, 1, 0, 0}}));
}

TEST(ParallelConvs, OnlyOfWhatNobodyElseNeeds) {
  Branches needed = Branches().conv("a", {{3, 3}, around}).conv("b", {{1, 1}}).add("a", "b", "y");
  needed.output("b");
  EXPECT_EQ(operators_after(std::move(needed)), (Operators{"Conv", "Conv", "Add"}));
  Branches twice = Branches().conv("a", {{3, 3}, around}).add("a", "a", "y");
  optimized(twice, {"parallel-convs"});
  EXPECT_TRUE(last_rewrites().empty());
  Branches trained = Branches().norm("a");
  trained.graph().nodes().back().set_attribute({"training_mode", int64_t{1}});
  trained.conv("b", {{3, 3}, around}).add("a", "b", "y");
  optimized(trained, {"parallel-convs"});
  EXPECT_TRUE(last_rewrites().empty());
}

// What is computed once would be computed by every turn of a loop.
TEST(ParallelConvs, StayOutsideOfSubgraphs) {
  Branches model = Branches().conv("a", {{3, 3}, around}).conv("b", {{1, 1}});
  model.input("c", ElementType::boolean, SymbolicShape{});
  const auto branch = [&](const char* op, const std::vector<std::string>& inputs) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Node& inner = graph->add_node(op);
    for (size_t i = 0; i < inputs.size(); ++i) inner.set_input(i, &model.value(inputs[i]));
    ir::Value& result = graph->add_value(std::string("result_of_") + op);
    inner.add_output(&result);
    graph->add_output(result);
    return graph;
  };
  ir::Node& choice = model.node("If", {"c"}, {"y"}, "choice");
  choice.set_attribute(ir::Attribute("then_branch", branch("Add", {"a", "b"})));
  choice.set_attribute(ir::Attribute("else_branch", branch("Relu", {"x"})));
  model.output("y");
  optimized(model, {"parallel-convs"});
  EXPECT_TRUE(last_rewrites().empty());
}

}  // namespace
}  // namespace tenon
