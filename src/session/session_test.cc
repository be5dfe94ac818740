#include "tenon/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "model_builder.h"

namespace tenon {
namespace {

const Dim batch = Dim::symbol("batch");

std::vector<float> floats(const Value& value) {
  auto data = value.tensor().data<float>();
  return {data.begin(), data.end()};
}

// y = Relu(x * w), z = x + x
ModelBuilder two_outputs() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 2});
  b.initializer("w", Tensor({2, 2}, {1.0f, -1.0f, 1.0f, -1.0f}));
  b.node("MatMul", {"x", "w"}, {"p"}, "product");
  b.node("Relu", {"p"}, {"y"}, "rectify");
  b.node("Add", {"x", "x"}, {"z"}, "double");
  b.output("y").output("z");
  return b;
}

TEST(Session, DescribesItself) {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  Session session = two_outputs().session(options);
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].name, "x");
  EXPECT_EQ(session.inputs()[0].type, "tensor(float)");
  EXPECT_EQ(session.inputs()[0].shape, (std::vector<std::string>{"batch", "2"}));
  EXPECT_EQ(session.outputs()[0].shape, (std::vector<std::string>{"batch", "2"}));
  ASSERT_EQ(session.placement().size(), 3u);
  EXPECT_EQ(session.placement()[0].node, "MatMul 'product' (node 0)");
  EXPECT_EQ(session.placement()[0].provider, "cpu");
  EXPECT_EQ(session.model().ir_version, 10);
}

TEST(Session, RunsByName) {
  Session session = two_outputs().session();
  NamedValues outputs = session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}});
  EXPECT_EQ(floats(outputs["y"]), (std::vector<float>{3, 0}));
  EXPECT_EQ(floats(outputs["z"]), (std::vector<float>{2, 4}));
}

TEST(Session, InitializersThatAreInputsAreDefaultsFromVersion4OfTheFormatOn) {
  ModelBuilder b = two_outputs();
  b.graph().add_input(b.value("w"));
  EXPECT_EQ(b.session().overridable_initializers().size(), 1u);
  b.model().ir_version = 3;
  Session session = b.session();
  EXPECT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.overridable_initializers().size(), 0u);
  const Tensor x({1, 2}, {1.0f, 2.0f});
  EXPECT_EQ(floats(session.run({{"x", x}})["y"]), (std::vector<float>{3, 0}));
  EXPECT_EQ(error_of([&] { session.run({{"x", x}, {"w", x}}); }).find("unknown-name"), 0u);
}

TEST(Session, RunsOnlyWhatIsAskedFor) {
  Session session = two_outputs().session();
  RunOptions options;
  options.outputs = {"z"};
  NamedValues outputs = session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}}, options);
  EXPECT_EQ(outputs.size(), 1u);
  EXPECT_EQ(floats(outputs["z"]), (std::vector<float>{2, 4}));
  // A failing node that the asked output does not need is not run.
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.input("shape", ElementType::int64, SymbolicShape{Dim(1)});
  b.node("Reshape", {"x", "shape"}, {"bad"});
  b.node("Add", {"x", "x"}, {"good"});
  b.output("bad").output("good");
  options.outputs = {"good"};
  NamedValues feeds = {{"x", Tensor({2}, {1.0f, 2.0f})}, {"shape", Tensor({1}, {int64_t{7}})}};
  EXPECT_EQ(floats(b.session().run(feeds, options)["good"]), (std::vector<float>{2, 4}));
  EXPECT_NE(error_of([&] { b.session().run(feeds); }), "");
}

TEST(Session, WritesIntoTheCallersMemory) {
  Session session = two_outputs().session();
  std::vector<float> memory(2, -1.0f);
  RunOptions options;
  options.destinations["y"] = Tensor::over(ElementType::float32, {1, 2}, memory.data());
  NamedValues outputs = session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}}, options);
  EXPECT_EQ(memory, (std::vector<float>{3, 0}));
  EXPECT_EQ(outputs["y"].tensor().raw(), memory.data());
  options.destinations["y"] = Tensor::over(ElementType::float32, {2, 1}, memory.data());
  EXPECT_EQ(error_of([&] {
              session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}}, options);
            }),
            "shape-mismatch, tensor 'y': the memory given for it is float [2, 1], the run made float [1, 2]");
}

TEST(Session, OutputsShareNothing) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(2)});
  b.initializer("w", Tensor({2}, {5.0f, 6.0f}));
  b.node("Identity", {"x"}, {"a"});
  b.node("Identity", {"w"}, {"b"});
  b.node("Identity", {"a"}, {"c"});
  b.output("a").output("b").output("c");
  Session session = b.session();
  Tensor x({2}, {1.0f, 2.0f});
  NamedValues outputs = session.run({{"x", x}});
  outputs["a"].tensor().mutable_data<float>()[0] = 9;
  outputs["b"].tensor().mutable_data<float>()[0] = 9;
  EXPECT_EQ(x.data<float>()[0], 1);
  EXPECT_EQ(floats(outputs["c"]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(session.run({{"x", x}})["b"]), (std::vector<float>{5, 6}));
}

TEST(Session, DefaultsCanBeReplaced) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  b.input("bias", ElementType::float32, SymbolicShape{Dim(1)});
  b.initializer("bias", Tensor({1}, {10.0f}));
  b.node("Add", {"x", "bias"}, {"y"});
  b.output("y");
  Session session = b.session();
  EXPECT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.overridable_initializers().size(), 1u);
  Tensor x({1}, {1.0f});
  EXPECT_EQ(floats(session.run({{"x", x}})["y"]), (std::vector<float>{11}));
  EXPECT_EQ(floats(session.run({{"x", x}, {"bias", Tensor({1}, {2.0f})}})["y"]), (std::vector<float>{3}));
}

TEST(Session, ManyThreadsAtOnce) {
  Session session = two_outputs().session();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        int64_t rows = 1 + (t + i) % 5;
        Tensor x(ElementType::float32, {rows, 2});
        for (float& element : x.mutable_data<float>()) element = static_cast<float>(t);
        for (float element : floats(session.run({{"x", x}})["z"])) wrong += element != static_cast<float>(2 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, CanBeCancelled) {
  Session session = two_outputs().session();
  std::stop_source source;
  RunOptions options;
  options.cancel = source.get_token();
  source.request_stop();
  EXPECT_EQ(error_of([&] {
              session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}}, options);
            }),
            "cancelled: the run was cancelled");
  EXPECT_EQ(session.run({{"x", Tensor({1, 2}, {1.0f, 2.0f})}}).size(), 2u);
}

// A graph that adds 1 to its input until the outer scope's `limit` is reached.
std::unique_ptr<ir::Graph> counting_body(ModelBuilder& outer) {
  auto body = std::make_unique<ir::Graph>();
  ir::Value& iteration = body->add_value("iteration");
  iteration.type = ir::Type::tensor(ElementType::int64, SymbolicShape{});
  ir::Value& condition = body->add_value("condition");
  condition.type = ir::Type::tensor(ElementType::boolean, SymbolicShape{});
  ir::Value& value = body->add_value("value");
  value.type = ir::Type::tensor(ElementType::float32, SymbolicShape{});
  body->add_input(iteration);
  body->add_input(condition);
  body->add_input(value);
  ir::Node& add = body->add_node("Add");
  add.set_input(0, &value);
  add.set_input(1, &outer.value("one"));
  ir::Value& next = body->add_value("next");
  add.add_output(&next);
  ir::Node& less = body->add_node("Less");
  less.set_input(0, &next);
  less.set_input(1, &outer.value("limit"));
  ir::Value& again = body->add_value("again");
  less.add_output(&again);
  body->add_output(again);
  body->add_output(next);
  return body;
}

TEST(Session, LoopsSeeOuterValuesAndCanBeCancelled) {
  ModelBuilder b;
  b.input("limit", ElementType::float32, SymbolicShape{});
  b.initializer("one", Tensor::scalar(1.0f));
  b.initializer("start", Tensor::scalar(0.0f));
  Tensor yes(ElementType::boolean, {});
  yes.mutable_data<bool>()[0] = true;
  b.initializer("yes", yes);
  b.node("Loop", {"", "yes", "start"}, {"end"}, "count").set_attribute(ir::Attribute("body", counting_body(b)));
  b.output("end");
  Session session = b.session();
  EXPECT_EQ(floats(session.run({{"limit", Tensor::scalar(5.0f)}})["end"]), (std::vector<float>{5}));
  std::stop_source source;
  RunOptions options;
  options.cancel = source.get_token();
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  // Above 2^24 adding 1 changes nothing, so this would never end.
  EXPECT_EQ(error_of([&] { session.run({{"limit", Tensor::scalar(1e9f)}}, options); }).substr(0, 9), "cancelled");
}

TEST(Session, FunctionsAreInlined) {
  ModelBuilder b;
  b.model().opset_imports.add("mine", 1);
  auto function = std::make_unique<ir::Function>();
  function->domain = "mine";
  function->name = "Scaled";
  function->opset_imports.add("", 13);
  function->attribute_names = {"factor"};
  function->body = std::make_unique<ir::Graph>();
  ir::Value& in = function->body->add_value("in");
  function->body->add_input(in);
  ir::Node& constant = function->body->add_node("Constant");
  ir::Attribute factor;
  factor.name = "value_float";
  factor.kind = ir::AttributeKind::float_;
  factor.reference = "factor";
  constant.set_attribute(std::move(factor));
  ir::Value& scale = function->body->add_value("scale");
  constant.add_output(&scale);
  ir::Node& multiply = function->body->add_node("Mul");
  multiply.set_input(0, &in);
  multiply.set_input(1, &scale);
  ir::Value& out = function->body->add_value("out");
  multiply.add_output(&out);
  function->body->add_output(out);
  b.model().functions.push_back(std::move(function));
  b.input("x", ElementType::float32, SymbolicShape{batch});
  b.node("Scaled", {"x"}, {"t"}, "first", "mine").set_attribute(ir::Attribute("factor", 3.0f));
  b.node("Scaled", {"t"}, {"y"}, "second", "mine").set_attribute(ir::Attribute("factor", 2.0f));
  b.output("y");
  SessionOptions options;
  options.level = OptimizationLevel::basic;  // above it, both become one node
  Session session = b.session(options);
  EXPECT_EQ(floats(session.run({{"x", Tensor({2}, {1.0f, 2.0f})}})["y"]), (std::vector<float>{6, 12}));
  EXPECT_EQ(session.outputs()[0].shape, (std::vector<std::string>{"batch"}));
  EXPECT_EQ(session.placement()[0].node, "mine.Scaled 'first' (node 0) > function Scaled > Mul (node 1)");
}

TEST(Session, ShapeArithmeticIsFollowed) {
  // Reshape(x, Concat(Gather(Shape(x), 0), [-1])): the exporters' flatten.
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{batch, 3, 4});
  b.initializer("zero", Tensor({1}, {int64_t{0}}));
  b.initializer("rest", Tensor({1}, {int64_t{-1}}));
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "zero"}, {"rows"});
  b.node("Concat", {"rows", "rest"}, {"target"}).set_attribute(ir::Attribute("axis", int64_t{0}));
  b.node("Reshape", {"x", "target"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.session().outputs()[0].shape, (std::vector<std::string>{"batch", "12"}));
}

TEST(Session, ContentDecidesNotStamps) {
  ModelBuilder newer(999);
  newer.input("x", ElementType::float32, SymbolicShape{Dim(1)});
  newer.node("Relu", {"x"}, {"y"});
  newer.output("y");
  Session session = newer.session();
  EXPECT_EQ(floats(session.run({{"x", Tensor({1}, {-1.0f})}})["y"]), (std::vector<float>{0}));
  ASSERT_EQ(session.notes().size(), 1u);
  EXPECT_EQ(
      session.notes()[0],
      "the model imports opset 999 of 'ai.onnx', newer than 28; its operators are taken to mean what they mean there");
}

TEST(Session, MemoryLimit) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Add", {"x", "x"}, {"y"}, "sum");
  b.output("y");
  SessionOptions options;
  options.memory_limit = 1 << 20;
  Session session = b.session(options);
  EXPECT_EQ(session.run({{"x", Tensor(ElementType::float32, {1000})}}).size(), 1u);
  EXPECT_EQ(error_of([&] {
              session.run({{"x", Tensor(ElementType::float32, {1000000})}});
            }),
            "out-of-memory in Add 'sum' (node 0): 4063232 bytes are needed, 0 of the limit of 1048576 are in use");
  EXPECT_EQ(session.run({{"x", Tensor(ElementType::float32, {1000})}}).size(), 1u);
}

TEST(Session, CancelEndsALoopWithoutSteps) {
  auto body = std::make_unique<ir::Graph>();
  body->add_input(body->add_value("i"));
  body->add_input(body->add_value("cond"));
  body->add_output(*body->inputs()[1]);
  body->add_output(*body->inputs()[0]);
  ModelBuilder b;
  b.initializer("go", Tensor(Shape{}, {true}));
  b.node("Loop", {"", "go"}, {"y"}).set_attribute(ir::Attribute("body", std::move(body)));
  b.output("y");
  Session session = b.session();
  std::stop_source cancel;
  std::jthread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancel.request_stop();
  });
  RunOptions options;
  options.cancel = cancel.get_token();
  EXPECT_TRUE(error_of([&] { session.run({}, options); }).starts_with("cancelled in Loop"));
}

TEST(Session, WhatALoopCollectsCountsAsMemory) {
  auto body = std::make_unique<ir::Graph>();
  body->add_input(body->add_value("i"));
  body->add_input(body->add_value("cond"));
  body->add_output(*body->inputs()[1]);
  body->add_output(*body->inputs()[0]);
  ModelBuilder b;
  b.node("Loop", {"", ""}, {"y"}).set_attribute(ir::Attribute("body", std::move(body)));
  b.output("y");
  SessionOptions options;
  options.memory_limit = 1 << 20;
  Session session = b.session(options);
  EXPECT_TRUE(error_of([&] { session.run({}); }).starts_with("out-of-memory in Loop"));
}

TEST(Session, TypesThatTheModelLeavesOpenAreCheckedWhenItRuns) {
  ModelBuilder b;
  b.graph().add_input(b.value("x"));
  b.initializer("w", Tensor(Shape{2}, {1.0f, 2.0f}));
  b.node("Add", {"w", "x"}, {"y"});
  b.output("y");
  Session session = b.session();
  EXPECT_EQ(session.run({{"x", Tensor(Shape{2}, {1.0f, 2.0f})}}).at("y").tensor().data<float>()[1], 4.0f);
  std::string error = error_of([&] { session.run({{"x", Tensor(Shape{2}, {1.0, 2.0})}}); });
  EXPECT_TRUE(error.starts_with("type-mismatch in Add (node 0), tensor 'x': inputs 0 and 1 must have one type"))
      << error;
}

}  // namespace
}  // namespace tenon
