#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "custom_operators.h"

namespace tenon {
namespace {

constexpr auto float32 = ElementType::float32;

TEST(CustomOperator, VersionsGoByTheImport) {
  CustomOperator second = scale("Scale", 3).attribute("extra", 0);
  second.attributes[0].otherwise = 10.0f;
  for (auto [imported, factor] : {std::pair(1, 2.0f), {2, 2.0f}, {3, 10.0f}, {9, 10.0f}}) {
    ModelBuilder b = one_node("Scale");
    b.model().opset_imports.set("my", imported);
    EXPECT_EQ(run_y(b.session(with({second, scale()})), {{"x", floats({1})}}).data<float>()[0], factor) << imported;
  }
  Session session = one_node("Scale").session(with({second}));
  ASSERT_EQ(session.notes().size(), 1);
  EXPECT_EQ(session.notes()[0],
            "my.Scale 'mine' (node 0) came with opset 3, the model imports 1; it runs all the same");
}

TEST(CustomOperator, InSubgraphsAndFunctions) {
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  b.model().opset_imports.add("functions", 1);
  b.input("x", float32, SymbolicShape{Dim::symbol("n")});
  b.input("condition", ElementType::boolean, SymbolicShape());
  auto branch = [&](float factor) {
    auto graph = std::make_unique<ir::Graph>();
    ir::Node& node = graph->add_node("Scale", "my");
    node.name = "inner";
    node.set_attribute(ir::Attribute("factor", factor));
    node.add_input(&b.value("x"));
    ir::Value& y = graph->add_value("branch_y");
    node.add_output(&y);
    graph->add_output(y);
    return graph;
  };
  ir::Node& choice = b.node("If", {"condition"}, {"chosen"}, "choice");
  choice.set_attribute(ir::Attribute("then_branch", branch(3)));
  choice.set_attribute(ir::Attribute("else_branch", branch(5)));
  adopt_subgraphs(choice);
  auto function = std::make_unique<ir::Function>();
  function->domain = "functions";
  function->name = "Twice";
  function->opset_imports.add("my", 1);
  function->body = std::make_unique<ir::Graph>();
  ir::Value& in = function->body->add_value("in");
  ir::Value& out = function->body->add_value("out");
  function->body->add_input(in);
  ir::Node& body = function->body->add_node("Scale", "my");
  body.add_input(&in);
  body.add_output(&out);
  function->body->add_output(out);
  b.model().functions.push_back(std::move(function));
  b.node("Twice", {"chosen"}, {"y"}, "call", "functions");
  b.output("y");
  for (OptimizationLevel level : {OptimizationLevel::none, OptimizationLevel::all}) {
    Session session = b.session(with({scale()}, level));
    for (bool condition : {true, false}) {
      Tensor flag(ElementType::boolean, Shape());
      flag.mutable_data<bool>()[0] = condition;
      EXPECT_EQ(run_y(session, {{"x", floats({1})}, {"condition", flag}}).data<float>()[0], condition ? 6 : 10);
    }
  }
}

// A function of the model goes before what the session was given, as it goes before Tenon's own operators.
TEST(CustomOperator, FunctionOfTheModelGoesFirst) {
  ModelBuilder b = one_node("Scale");
  auto function = std::make_unique<ir::Function>();
  function->domain = "my";
  function->name = "Scale";
  function->opset_imports.add("", ops::newest_opset);
  function->body = std::make_unique<ir::Graph>();
  ir::Value& in = function->body->add_value("in");
  ir::Value& out = function->body->add_value("out");
  function->body->add_input(in);
  ir::Node& negation = function->body->add_node("Neg");
  negation.add_input(&in);
  negation.add_output(&out);
  function->body->add_output(out);
  b.model().functions.push_back(std::move(function));
  EXPECT_TRUE(identical(run_y(b.session(with({scale()})), {{"x", floats({1, 2})}}), floats({-1, -2})));
}

// x + Op(constant) + Op(constant), where each Op counts how often its kernel runs.
TEST(CustomOperator, IsFoldedAndMergedUnlessRandom) {
  for (bool random : {false, true}) {
    auto runs = std::make_shared<std::atomic<int>>();
    CustomOperator count = scale("Count").cpu([runs](CustomRun& run) {
      ++*runs;
      run.output(0).mutable_data<float>()[0] = run.input(0).data<float>()[0];
    });
    if (random) count.random();
    ModelBuilder b;
    b.model().opset_imports.add("my", 1);
    b.input("x", float32, SymbolicShape{Dim(1)});
    b.initializer("c", floats({4}));
    b.node("Count", {"c"}, {"folded"}, "a", "my");
    b.node("Count", {"x"}, {"first"}, "b", "my");
    b.node("Count", {"x"}, {"second"}, "c", "my");
    b.node("Sum", {"folded", "first", "second"}, {"y"});
    b.output("y");
    Session session = b.session(with({count}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(run_y(session, {{"x", floats({1})}}).data<float>()[0], 6);
    EXPECT_EQ(*runs, random ? 6 : 3);
    EXPECT_EQ(session.placement().size(), random ? 4 : 2);
  }
}

// Names of Tenon's operators in another domain mean nothing to the optimiser.
TEST(CustomOperator, NamesakesOfBuiltInOperators) {
  for (const char* name : {"Identity", "Dropout", "Cast", "Relu", "Transpose", "Reshape", "Softmax", "Constant"}) {
    CustomOperator op = scale(name);
    Session session = one_node(name).session(with({op}));
    EXPECT_EQ(session.placement().size(), 1) << name;
    EXPECT_TRUE(identical(run_y(session, {{"x", floats({1, 2})}}), floats({2, 4}))) << name;
  }
  for (const char* name : {"Add", "Mul", "Div", "Sub"}) {
    ModelBuilder b;
    b.model().opset_imports.add("my", 1);
    b.input("x", float32, SymbolicShape{Dim::symbol("n")});
    b.initializer("c",
                  Tensor::scalar(std::string_view(name) == "Add" || std::string_view(name) == "Sub" ? 0.0f : 1.0f));
    b.node(name, {"x", "c"}, {"y"}, "mine", "my");
    b.output("y");
    CustomOperator op = scale(name).input("c", "T").types("T", {float32});
    EXPECT_TRUE(identical(run_y(b.session(with({op})), {{"x", floats({1, 2})}}), floats({2, 4}))) << name;
  }
}

// What a kernel gives out may be an input under another shape.
TEST(CustomOperator, GivesAnInputOn) {
  for (bool shape_is_known : {true, false}) {
    CustomOperator column = CustomOperator("my", "Column")
                                .input("x", {float32})
                                .output("y", {float32})
                                .infer([=](CustomInference& i) {
                                  if (shape_is_known && i.input_shape(0))
                                    i.set_output(0, float32, SymbolicShape{(*i.input_shape(0))[0], Dim(1)});
                                })
                                .cpu([](CustomRun& run) {
                                  run.set_output(0, run.input(0).reshaped({run.input(0).elements(), 1}));
                                });
    ModelBuilder b;
    b.model().opset_imports.add("my", 1);
    b.input("x", float32, SymbolicShape{Dim::symbol("n")});
    b.node("Neg", {"x"}, {"a"});
    b.node("Column", {"a"}, {"b"}, "mine", "my");
    b.node("Exp", {"x"}, {"c"});
    b.node("Add", {"b", "c"}, {"d"});
    b.node("Neg", {"b"}, {"y"});
    b.output("d");
    b.output("y");
    Session session = b.session(with({column}));
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(identical(run_y(session, {{"x", floats({1, 2})}}), Tensor({2, 1}, {1.0f, 2.0f})));
  }
}

TEST(CustomOperator, RunsFromManyThreads) {
  CustomOperator op = scale().cpu([](CustomRun& run) {
    std::shared_ptr<void> scratch = run.scratch(run.input(0).bytes());
    auto* copy = static_cast<float*>(scratch.get());
    auto x = run.input(0).data<float>();
    auto y = run.output(0).mutable_data<float>();
    run.parallel_for(run.input(0).elements(), 16, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        copy[i] = 2 * x[i];
        y[i] = copy[i];
      }
    });
  });
  const Session session = one_node("Scale").session(with({op}));
  std::vector<int> good(4);
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int64_t n = 1; n < 200; n += 7) {
        std::vector<float> x(static_cast<size_t>(n), static_cast<float>(t)), twice(x.size(), static_cast<float>(2 * t));
        Tensor y = run_y(session, {{"x", Tensor({n}, std::span<const float>(x))}});
        good[t] += identical(y, Tensor({n}, std::span<const float>(twice)));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, std::vector<int>(4, 29));
}

}  // namespace
}  // namespace tenon
